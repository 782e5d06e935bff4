// A form for a row: one input per column, according to its kind.

import { element } from "./dom.js";

// Levels offered in a list; with more levels, the value is typed.
const MAX_LEVELS = 200;

const NUMERIC = new Set(["number", "count"]);

function levelsOf(column) {
  if (column.kind === "yes/no" && !column.levels) return column.flag ? [false, true] : [0, 1];
  return column.levels && column.levels.length <= MAX_LEVELS ? column.levels : undefined;
}

function choice(levels, id) {
  const node = element("select", { id }, element("option", { value: "" }, "(missing)"));
  levels.forEach((level, k) => node.append(element("option", { value: String(k) }, String(level))));
  const chosen = () => (node.value === "" ? null : levels[Number(node.value)]);
  return {
    node,
    get: chosen,
    text: () => (node.value === "" ? null : String(chosen())),
    set(value) {
      const missing = value === null || value === undefined;
      const place = missing ? -1 : levels.findIndex((level) => String(level) === String(value));
      node.value = place < 0 ? "" : String(place);
    },
  };
}

function typed(column, id) {
  const numeric = NUMERIC.has(column.kind);
  const node = column.kind === "text" ? element("textarea", { id, rows: "3" })
    : element("input", { id, type: "text", autocomplete: "off", inputmode: numeric ? "decimal" : "text" });
  return {
    node,
    get() {
      if (node.value === "" || (column.kind !== "text" && node.value.trim() === "")) return null;
      if (!numeric) return node.value;
      const value = Number(node.value.trim());
      if (Number.isNaN(value)) throw new Error(`${column.name}: "${node.value}" is not a number; enter a number, or leave the field empty`);
      return value;
    },
    text: () => (node.value === "" ? null : node.value),
    set(value) {
      node.value = value === null || value === undefined ? "" : String(value);
    },
  };
}

// A slider over the learned range, in sync with the input beside it.
function slider(column, input) {
  const whole = column.kind === "count";
  const digits = whole ? 0 : Math.max(0, 2 - Math.floor(Math.log10(column.high - column.low)));
  const node = element("input", { type: "range", class: "slider", min: String(column.low), max: String(column.high),
    step: whole ? "1" : "any", "aria-label": `${column.name}, slider` });
  node.addEventListener("input", () => {
    input.node.value = String(Number(Number(node.value).toFixed(Math.min(digits, 100))));
    node.classList.remove("unset");
  });
  const follow = () => {
    const value = input.node.value.trim() === "" ? NaN : Number(input.node.value);
    node.classList.toggle("unset", Number.isNaN(value));
    node.value = String(Number.isNaN(value) ? (column.low + column.high) / 2 : value);
  };
  input.node.addEventListener("input", follow);
  return { node, follow };
}

function fieldOf(column, id) {
  const levels = levelsOf(column);
  const input = levels ? choice(levels, id) : typed(column, id);
  const field = element("div", { class: column.kind === "text" ? "field wide" : "field" },
    element("label", { for: id }, column.name), input.node);
  if (!levels && column.ends) {
    field.append(element("span", { class: "hint", id: `${id}-hint` }, `usual range: ${column.ends.join(" to ")}`));
    input.node.setAttribute("aria-describedby", `${id}-hint`);
  }
  if (levels || !NUMERIC.has(column.kind) || !(column.high > column.low)) return { field, input };
  const along = slider(column, input);
  input.node.after(along.node);
  const { set } = input;
  return { field, input: { ...input, set(value) { set(value); along.follow(); } } };
}

// Build a form for columns ({name, kind, levels, flag, low, high, ends}): the first `open` go into `shown`, the others
// into `more`, a details element. Ids of inputs start with `prefix`. A row is an object without a prototype.
export function rowForm(columns, { shown, more, open, prefix }) {
  const inputs = new Map();
  const rest = element("div", { class: "fields" });
  columns.forEach((column, k) => {
    if (column.kind === "unused") return;
    const { field, input } = fieldOf(column, `${prefix}-${k}`);
    inputs.set(column.name, input);
    (k < open ? shown : rest).append(field);
  });
  const folded = rest.children.length;
  if (folded) more.append(element("summary", {}, folded === 1 ? "1 more column" : `${folded} more columns`), rest);
  more.hidden = folded === 0;
  return {
    // Return the entered row; throw an Error if a value cannot be read.
    row() {
      const row = Object.create(null);
      for (const [name, input] of inputs) row[name] = input.get();
      return row;
    },
    // Return the entered values as pairs of name and text, without missing ones.
    texts: () => [...inputs].map(([name, input]) => [name, input.text()]).filter(([, text]) => text !== null),
    // Fill the form from a function of the column name; null is missing.
    fill(valueOf) {
      for (const [name, input] of inputs) input.set(valueOf(name));
    },
  };
}

// Return a function from a name to the value of an object's own key.
export function valuesIn(object) {
  return (name) => (Object.hasOwn(object, name) ? object[name] : null);
}

// Return the columns of the scorer in the given order, with the given properties.
export function scorerColumns(model, scorer, order) {
  const flags = new Set(model.columns.filter((column) => column.read_as === "flag").map((column) => column.name));
  const known = new Map(scorer.columns.map((column) => [column.name, column]));
  return order.filter(({ name }) => known.has(name))
    .map((column) => ({ ...column, ...known.get(column.name), flag: flags.has(column.name) }));
}
