// Reads jobs ({module, rows}) from standard input and writes what the module says of each row, as JSON.
import { readFileSync } from "node:fs";

const cellOf = (cell) => {
  if (cell === null || typeof cell !== "object") return cell;
  if ("number" in cell) return { inf: Infinity, "-inf": -Infinity, nan: NaN }[cell.number];
  if ("integer" in cell) return BigInt(cell.integer);
  if ("date" in cell) return new Date(cell.date);
  return "undefined" in cell ? undefined : cell;
};

const rowOf = (pairs) => {
  const row = Object.create(null);
  for (const [name, cell] of pairs) row[name] = cellOf(cell);
  return row;
};

const shown = (_, value) => {
  if (typeof value === "bigint") return { integer: String(value) };
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
};

const answers = (module, names, pairs) => {
  try {
    const row = rowOf(pairs);
    return Object.fromEntries(names.map((name) => [name, module[name](row)]));
  } catch (problem) {
    return { error: problem instanceof Error ? problem.message : String(problem) };
  }
};

const found = [];
for (const { module: path, names, rows } of JSON.parse(readFileSync(0, "utf8"))) {
  const module = await import(path);
  found.push({
    columns: module.columns,
    classes: module.classes,
    rows: rows.map((pairs) => answers(module, names, pairs)),
  });
}
process.stdout.write(JSON.stringify(found, shown));
