// Cells of a row, read as the model has learned to read them; null is a missing cell.

const WHITE = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+";
const AROUND = new RegExp(`^${WHITE}|${WHITE}$`, "g");
const NUMBER = /^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$/;
const INFINITE = /^([-+]?)(inf|infinity)$/i;
const NOT_A_NUMBER = /^[-+]?nan(\([a-z0-9_]*\))?$/i;
const LONG_INTEGER = /^-?[1-9]\d{15,17}$/;
const DATE =
  /^(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d)(?::(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?(Z|[-+]\d\d(?::?\d\d)?)?)?)?$/;
const TIME = /^(\d\d)(?::(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?$/;
const HALF_CHARACTER = /[\ud800-\udfff]/gu;
const TRUE_WORDS = new Set(["true", "t", "yes", "y", "1"]);
const FALSE_WORDS = new Set(["false", "f", "no", "n", "0"]);
const LARGEST_LONG = 9223372036854775807n;

// A day or a time of day, in microseconds.
class Moment {
  constructor(kind, micros) {
    this.kind = kind;
    this.micros = micros;
  }
}

function shown(value) {
  let text;
  if (typeof value === "string") text = `'${value}'`;
  else if (value instanceof Moment) text = momentText(value);
  else text = String(value);
  return text.length <= 40 ? text : text.slice(0, 37) + "...";
}

function kindOfCell(value) {
  if (value instanceof Moment) return value.kind;
  return { string: "text", bigint: "number" }[typeof value] || typeof value;
}

function badCell(column, problem, remedy) {
  return new Error(`column '${column.name}': ${problem}; ${remedy}`);
}

function unexpected(column, value, expected) {
  const problem = `found ${shown(value)} (${kindOfCell(value)}), expected ${expected}`;
  return badCell(column, problem, "correct the cell, or leave it empty");
}

// What was given as a cell of a known kind: null, a number, bigint, boolean, string or Moment.
function givenCell(column, raw) {
  if (raw === null || raw === undefined || (typeof raw === "number" && Number.isNaN(raw))) return null;
  if (typeof raw === "number" || typeof raw === "boolean") return raw;
  if (typeof raw === "string") return raw.replace(HALF_CHARACTER, "\ufffd");
  if (typeof raw === "bigint") {
    if (raw > LARGEST_LONG || raw < -LARGEST_LONG - 1n) throw unexpected(column, raw, "a number below 2**63");
    return raw;
  }
  if (raw instanceof Date) {
    const milliseconds = raw.getTime();
    return Number.isNaN(milliseconds) ? null : new Moment("date", 1000n * BigInt(milliseconds));
  }
  throw badCell(column, `found a value of type ${typeof raw}`, "give a number, a text, true, false or null");
}

// A cell as the column has learned to read it.
function learnedCell(column, raw) {
  const cell = givenCell(column, raw);
  const wanted = column.readAs;
  if (cell === null || wanted === "as it is") return cell;
  const numeric = wanted === "number" || wanted === "flag";
  if (typeof cell === "string") {
    const text = cell.replace(AROUND, "");
    return text === "" ? null : READERS[wanted](column, text, cell);
  }
  if (cell instanceof Moment ? cell.kind === wanted : numeric) return cell;
  throw unexpected(column, cell, numeric ? "a number" : wanted === "time" ? "a time" : "a date");
}

const READERS = {
  number(column, text, cell) {
    if (LONG_INTEGER.test(text)) return BigInt(text);
    if (NUMBER.test(text)) return Number(text);
    if (NOT_A_NUMBER.test(text)) return null;
    const infinite = INFINITE.exec(text);
    if (infinite) return infinite[1] === "-" ? -Infinity : Infinity;
    throw unexpected(column, cell, "a number");
  },
  flag(column, text, cell) {
    const word = text.toLowerCase();
    if (TRUE_WORDS.has(word)) return true;
    if (FALSE_WORDS.has(word)) return false;
    throw unexpected(column, cell, "true or false");
  },
  date(column, text, cell) {
    const found = DATE.exec(text);
    const micros = found && dateMicros(found);
    if (micros === null) throw unexpected(column, cell, "a date such as 2024-12-31");
    return new Moment("date", micros);
  },
  time(column, text, cell) {
    const found = TIME.exec(text);
    const micros = found && clockMicros(found.slice(1));
    if (micros === null) throw unexpected(column, cell, "a time such as 23:59");
    return new Moment("time", micros);
  },
};

function dateMicros(parts) {
  const [year, month, day] = parts.slice(1, 4).map(Number);
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  const clock = clockMicros(parts.slice(4, 8));
  const ahead = zoneMicros(parts[8]);
  if (year < 1 || date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return null;
  return clock === null || ahead === null ? null : 1000n * BigInt(date.getTime()) + clock - ahead;
}

// By how much the time in a zone (Z, +02, +0200 or +02:00) is ahead of UTC.
function zoneMicros(zone) {
  if (zone === undefined || zone === "Z") return 0n;
  const digits = zone.slice(1).replace(":", "");
  const ahead = clockMicros([digits.slice(0, 2), digits.slice(2)]);
  return ahead !== null && zone[0] === "-" ? -ahead : ahead;
}

function clockMicros([hours, minutes, seconds, fraction]) {
  const [h, m, s] = [hours, minutes, seconds].map((part) => Number(part || 0));
  if (h > 23 || m > 59 || s > 59) return null;
  return BigInt(3600 * h + 60 * m + s) * 1000000n + BigInt((fraction || "").padEnd(6, "0"));
}

function momentText(moment) {
  const day = 86400000000n;
  const date = new Date(Number(moment.micros / 1000n));
  const text = date.toISOString().slice(0, -1).replace(/\.?0+$/, "");
  if (moment.kind === "time") return text.slice(11);
  return moment.micros % day === 0n ? text.slice(0, 10) : text.replace("T", " ");
}

// A cell as a double, NaN where it is missing.
function numberIn(column, raw) {
  const cell = learnedCell(column, raw);
  if (cell === null) return NaN;
  if (typeof cell === "string") throw unexpected(column, cell, "a number");
  if (cell instanceof Moment) return Number(cell.micros) / (cell.kind === "time" ? 1e6 : 86400e6);
  return Number(cell);
}

function finiteNumberIn(column, raw) {
  const number = numberIn(column, raw);
  if (number === Infinity || number === -Infinity) throw unexpected(column, number, "a finite number (not infinity)");
  return number;
}

// A cell as a text, null where it is missing.
function textIn(column, raw) {
  const cell = learnedCell(column, raw);
  if (cell !== null && typeof cell !== "string") throw unexpected(column, cell, "text");
  return cell;
}

// Levels as they are written in the model, and a function from a cell to its code: -1 missing, -2 none of the levels.
function levelSet({ type, values }) {
  const places = new Map();
  const exact = new Map();
  values.forEach((value, code) => {
    const key = levelKey(type, value);
    if (!places.has(key)) places.set(key, code);
    if (type === "integer") exact.set(BigInt(value), code);
  });
  function codeIn(column, raw) {
    const cell = learnedCell(column, raw);
    if (cell === null) return -1;
    if (type === "none") return -2;
    const kind = cell instanceof Moment ? cell.kind : typeof cell === "string" ? "text" : "number";
    const wanted = type === "integer" || type === "flag" ? "number" : type;
    if (kind !== wanted) {
      throw badCell(column, `it holds ${kind}, but ${wanted} before`, "use one type for this column");
    }
    const found = typeof cell === "bigint" && type === "integer" ? exact.get(cell) : places.get(cellKey(cell));
    return found === undefined ? -2 : found;
  }
  return { type, values: values.map((value) => shownLevel(type, value)), codeIn };
}

function levelKey(type, value) {
  if (type === "text") return value;
  if (type === "date" || type === "time") return BigInt(value);
  return type === "number" ? decodedNumber(value) : Number(value);
}

function cellKey(cell) {
  if (typeof cell === "string") return cell;
  return cell instanceof Moment ? cell.micros : Number(cell);
}

function shownLevel(type, value) {
  if (type === "date" || type === "time") return momentText(new Moment(type, BigInt(value)));
  if (type === "integer") return typeof value === "string" ? BigInt(value) : value;
  return type === "number" ? decodedNumber(value) : value;
}
