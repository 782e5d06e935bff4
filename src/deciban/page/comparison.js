// Comparison with the pinned row: cells and evidence.

import { element, signed } from "../web/dom.js";
import { rolledUp, waterfall } from "../web/evidence.js";

// Return [name, old text, new text] for each cell that differs.
export function changedCells(before, now) {
  const [old, fresh] = [new Map(before), new Map(now)];
  const names = [...new Set([...old.keys(), ...fresh.keys()])].filter((name) => old.get(name) !== fresh.get(name));
  return names.map((name) => [name, old.get(name) ?? "missing", fresh.get(name) ?? "missing"]);
}

// Subtract the terms of one sum from those of another.
export function differences(now, before) {
  const keyOf = ({ name, role }) => `${role} ${name}`;
  const old = new Map(before.map((term) => [keyOf(term), term.value]));
  const known = new Set(now.map(keyOf));
  const gone = before.filter((term) => !known.has(keyOf(term))).map((term) => ({ ...term, value: 0 }));
  return [...now, ...gone].map(({ name, value, role }) => {
    const change = value - (old.get(keyOf({ name, role })) ?? 0);
    return { name, value: Number.isNaN(change) ? 0 : change, role };
  }).filter(({ role, value }) => role === "column" || value !== 0);
}

// Show the differences in an element; direction: the class that the evidence is for and the one it is against.
export function showComparison(root, { cells, now, before, direction, maxTerms, chart }) {
  const lines = cells.map(([name, old, fresh]) =>
    element("li", {}, element("strong", {}, name), ": ", element("s", {}, old), " → ", element("b", {}, fresh)));
  const list = element("ul", { class: "changes" }, ...lines);
  if (!lines.length) list.append(element("li", {}, "No differences from the pinned row yet."));
  root.replaceChildren(list);
  if (!now || !before || !lines.length) return;
  const terms = rolledUp(differences(now, before), maxTerms);
  const total = terms.reduce((sum, [, value]) => sum + value, 0);
  root.append(element("p", {}, `In total ${signed(total)} decibans ${direction}.`),
    waterfall(terms, `change of the evidence ${direction}, in decibans`, chart));
}
