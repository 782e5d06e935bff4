// Decoding of the model's JSON, and conversion of the cells of a row; null is a missing cell.

// Size in bytes of the number types in the JSON.
const SIZES = { f8: 8, i4: 4, i2: 2, u2: 2, u1: 1 };

function decodeNumber(value) {
  if (typeof value === "number") return value;
  return { inf: Infinity, "-inf": -Infinity, nan: NaN }[value];
}

// Return the numbers of a list or of base64, which is little-endian.
function decodeArray(encoded) {
  if (Array.isArray(encoded)) return Float64Array.from(encoded, decodeNumber);
  const kind = Object.keys(encoded)[0];
  const text = atob(encoded[kind]);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const view = new DataView(bytes.buffer);
  const size = SIZES[kind];
  const found = new Float64Array(bytes.length / size);
  for (let i = 0; i < found.length; i++) {
    if (kind === "f8") found[i] = view.getFloat64(8 * i, true);
    else if (kind === "i4") found[i] = view.getInt32(4 * i, true);
    else if (kind === "i2") found[i] = view.getInt16(2 * i, true);
    else found[i] = kind === "u2" ? view.getUint16(2 * i, true) : bytes[i];
  }
  return found;
}

// Return a test for membership in a set of code points, given as run lengths: skipped, included, and so on.
function pointSet(runs) {
  let end = 0;
  for (const size of runs) end += size;
  const flags = new Uint8Array(end);
  let at = 0;
  for (let k = 0; k < runs.length; k += 2) {
    at += runs[k];
    flags.fill(1, at, at + runs[k + 1]);
    at += runs[k + 1];
  }
  return (point) => point < end && flags[point] === 1;
}

// Return how many of the increasing numbers are not above a number.
function countUpTo(rising, number) {
  let low = 0;
  let high = rising.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rising[middle] <= number) low = middle + 1;
    else high = middle;
  }
  return low;
}

function largest(values) {
  return values.reduce((most, value) => Math.max(most, value), -Infinity);
}

// Add weight * value for each class.
function addTo(out, weight, values) {
  for (let c = 0; c < values.length; c++) out[c] += weight * values[c];
}

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
const MAX_LONG = 9223372036854775807n;

// A day or a time of day, in microseconds.
class Moment {
  constructor(kind, micros) {
    this.kind = kind;
    this.micros = micros;
  }
}

function displayCell(value) {
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

function typeError(column, value, expected) {
  const problem = `found ${displayCell(value)} (${kindOfCell(value)}), expected ${expected}`;
  return badCell(column, problem, "correct the cell, or leave it empty");
}

// Return a cell as null, a number, bigint, boolean, string or Moment.
function parseCell(column, raw) {
  if (raw === null || raw === undefined || (typeof raw === "number" && Number.isNaN(raw))) return null;
  if (typeof raw === "number" || typeof raw === "boolean") return raw;
  if (typeof raw === "string") return raw.replace(HALF_CHARACTER, "\ufffd");
  if (typeof raw === "bigint") {
    if (raw > MAX_LONG || raw < -MAX_LONG - 1n) throw typeError(column, raw, "a number below 2**63");
    return raw;
  }
  if (raw instanceof Date) {
    const milliseconds = raw.getTime();
    return Number.isNaN(milliseconds) ? null : new Moment("date", 1000n * BigInt(milliseconds));
  }
  throw badCell(column, `found a value of type ${typeof raw}`, "use a number, a string, true, false or null");
}

// Return a cell converted to the type of the column.
function convertCell(column, raw) {
  const cell = parseCell(column, raw);
  const wanted = column.readAs;
  if (cell === null || wanted === "as it is") return cell;
  const numeric = wanted === "number" || wanted === "flag";
  if (typeof cell === "string") {
    const text = cell.replace(AROUND, "");
    return text === "" ? null : READERS[wanted](column, text, cell);
  }
  if (cell instanceof Moment ? cell.kind === wanted : numeric) return cell;
  throw typeError(column, cell, numeric ? "a number" : wanted === "time" ? "a time" : "a date");
}

const READERS = {
  number(column, text, cell) {
    if (LONG_INTEGER.test(text)) return BigInt(text);
    if (NUMBER.test(text)) return Number(text);
    if (NOT_A_NUMBER.test(text)) return null;
    const infinite = INFINITE.exec(text);
    if (infinite) return infinite[1] === "-" ? -Infinity : Infinity;
    throw typeError(column, cell, "a number");
  },
  flag(column, text, cell) {
    const word = text.toLowerCase();
    if (TRUE_WORDS.has(word)) return true;
    if (FALSE_WORDS.has(word)) return false;
    throw typeError(column, cell, "true or false");
  },
  date(column, text, cell) {
    const found = DATE.exec(text);
    const micros = found && dateMicros(found);
    if (micros === null) throw typeError(column, cell, "a date such as 2024-12-31");
    return new Moment("date", micros);
  },
  time(column, text, cell) {
    const found = TIME.exec(text);
    const micros = found && clockMicros(found.slice(1));
    if (micros === null) throw typeError(column, cell, "a time such as 23:59");
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

// Return the offset of a zone (Z, +02, +0200 or +02:00) from UTC.
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

// Return a part of a date or of a text.
function readPart(cell, part) {
  if (typeof cell === "string") {
    return part === "first word" ? cell.split(" ", 1)[0] : Array.from(cell).slice(0, PREFIX_LENGTHS[part]).join("");
  }
  const milliseconds = cell.micros / 1000n - (cell.micros % 1000n < 0n ? 1n : 0n);
  const date = new Date(Number(milliseconds));
  if (part === "hour") return date.getUTCHours();
  return part === "weekday" ? date.getUTCDay() || 7 : date.getUTCMonth() + 1;
}

const PREFIX_LENGTHS = { "first character": 1, "first 2 characters": 2, "first 3 characters": 3 };

// Place of a cell, or of a part of it, among levels: 0 if missing, 1 if unknown, else 2 + the index of the level.
function levelPlace(column, { type, values, part }) {
  const places = new Map();
  const exact = new Map();
  values.forEach((value, k) => {
    const key = levelKey(type, value);
    if (!places.has(key)) places.set(key, 2 + k);
    if (type === "integer") exact.set(BigInt(value), 2 + k);
  });
  const ofDate = part !== undefined && type !== "text";
  const wanted = ofDate ? "date" : type === "integer" || type === "flag" ? "number" : type;
  return {
    column,
    size: 2 + values.length,
    of(row) {
      let cell = row.cell(column);
      if (cell === null) return 0;
      if (type === "none") return 1;
      const kind = cell instanceof Moment ? cell.kind : typeof cell === "string" ? "text" : "number";
      if (kind !== wanted) {
        throw badCell(column, `found ${kind}, expected ${wanted}`, "use one type for this column");
      }
      if (part !== undefined) cell = readPart(cell, part);
      const found = typeof cell === "bigint" && type === "integer" ? exact.get(cell) : places.get(cellKey(cell));
      return found === undefined ? 1 : found;
    },
    display: (row) => parseCell(column, row.raw[column.number]),
  };
}

// Place of a number between cuts: 0 if missing, else 1 + the number of cuts not above it.
function cutPlace(column, cuts) {
  return {
    column,
    size: 2 + cuts.length,
    of(row) {
      const x = row.number(column);
      return Number.isNaN(x) ? 0 : 1 + countUpTo(cuts, x);
    },
    display: (row) => row.number(column),
  };
}

// Cells of a row, each converted once, on first use.
class Row {
  constructor(raw, places) {
    this.raw = raw;
    this.allPlaces = places;
    this.cells = new Map();
    this.numbers = new Map();
    this.places = new Map();
  }

  // Return a cell in the type of the column; null if it is missing.
  cell(column) {
    let found = this.cells.get(column.number);
    if (found === undefined) this.cells.set(column.number, (found = convertCell(column, this.raw[column.number])));
    return found;
  }

  // Return a cell as a double; NaN if it is missing.
  number(column) {
    let found = this.numbers.get(column.number);
    if (found === undefined) this.numbers.set(column.number, (found = numberOf(column, this.cell(column))));
    return found;
  }

  // Return a cell as a string; null if it is missing.
  text(column) {
    const cell = this.cell(column);
    if (cell !== null && typeof cell !== "string") throw typeError(column, cell, "text");
    return cell;
  }

  // Return the place with this index in the model.
  place(number) {
    let found = this.places.get(number);
    if (found === undefined) this.places.set(number, (found = this.allPlaces[number].of(this)));
    return found;
  }
}

function numberOf(column, cell) {
  if (cell === null) return NaN;
  if (typeof cell === "string") throw typeError(column, cell, "a number");
  if (cell instanceof Moment) return Number(cell.micros) / (cell.kind === "time" ? 1e6 : 86400e6);
  return Number(cell);
}

function levelKey(type, value) {
  if (type === "text") return value;
  if (type === "date" || type === "time") return BigInt(value);
  return type === "number" ? decodeNumber(value) : Number(value);
}

function cellKey(cell) {
  if (typeof cell === "string") return cell;
  return cell instanceof Moment ? cell.micros : Number(cell);
}

function displayLevel(type, value) {
  if (type === "date" || type === "time") return momentText(new Moment(type, BigInt(value)));
  if (type === "integer") return typeof value === "string" ? BigInt(value) : value;
  return type === "number" ? decodeNumber(value) : value;
}
