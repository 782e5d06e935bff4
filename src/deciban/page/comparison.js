// What has changed since a row was pinned: its cells, and the evidence.

import { element, signed } from "../web/dom.js";
import { rolledUp, waterfall } from "../web/evidence.js";

// Pairs of name and text as a line for each cell that differs.
export function changedCells(before, now) {
  const [old, fresh] = [new Map(before), new Map(now)];
  const names = [...new Set([...old.keys(), ...fresh.keys()])].filter((name) => old.get(name) !== fresh.get(name));
  return names.map((name) => [name, old.get(name) ?? "missing", fresh.get(name) ?? "missing"]);
}

// The terms of one sum less those of another.
export function differences(now, before) {
  const old = new Map(before.map((term) => [`${term.isStart}${term.name}`, term.value]));
  return now.map(({ name, value, isStart }) => {
    const change = value - (old.get(`${isStart}${name}`) ?? 0);
    return { name, value: Number.isNaN(change) ? 0 : change, isStart };
  }).filter(({ isStart, value }) => !isStart || value !== 0);
}

// Show what differs in an element; said: what the evidence is for and against.
export function showComparison(root, { cells, now, before, said, most, chart }) {
  const lines = cells.map(([name, old, fresh]) =>
    element("li", {}, element("strong", {}, name), ": ", element("s", {}, old), " → ", element("b", {}, fresh)));
  const list = element("ul", { class: "changes" }, ...lines);
  if (!lines.length) list.append(element("li", {}, "Nothing differs from the pinned row: change a value."));
  root.replaceChildren(list);
  if (!now || !before || !lines.length) return;
  const terms = rolledUp(differences(now, before), most);
  const total = terms.reduce((sum, [, value]) => sum + value, 0);
  root.append(element("p", {}, `Together that is ${signed(total)} decibans ${said}.`),
    waterfall(terms, `change of the evidence ${said}, in decibans`, chart));
}
