// Share of each column in the evidence for one class against another.

import { element, signed } from "../web/dom.js";

const MAX_COLUMNS = 12;
const PARTS = [["own", "own"], ["joint", "joint"], ["correction", "correction"]];

const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}%`;

function barOf({ name, value }, share, chart) {
  const fill = element("span", { class: "fill" });
  fill.style.width = `${100 * share}%`;
  fill.style.background = value >= 0 ? chart.for : chart.against;
  return element("li", { "data-column": name, "data-share": String(share), "data-decibans": String(value) },
    element("span", { class: "name", title: name }, name), element("span", { class: "track" }, fill),
    element("span", { class: "number" }, `${percent(share)} (${signed(value)})`));
}

function partsOf(columns) {
  const line = (term) => element("tr", {}, element("th", { scope: "row" }, term.name),
    ...PARTS.map(([, key]) => element("td", {}, signed(term[key]))), element("td", {}, signed(term.value)));
  const heads = ["column", ...PARTS.map(([name]) => name), "sum"].map((name) => element("th", { scope: "col" }, name));
  return element("table", {}, element("caption", {}, "Evidence in decibans"),
    element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...columns.map(line)));
}

// Show the shares of the columns in a list, and a table of their parts in a second element.
export function showShares(list, parts, terms, chart) {
  const size = (value) => (Number.isFinite(value) ? Math.abs(value) : Number.MAX_VALUE / 1e6);
  const columns = terms.filter((term) => term.role === "column" && term.value !== 0)
    .sort((a, b) => size(b.value) - size(a.value));
  const total = columns.reduce((sum, { value }) => sum + size(value), 0);
  const shown = columns.slice(0, MAX_COLUMNS);
  list.replaceChildren(...shown.map((term) => barOf(term, size(term.value) / total, chart)));
  if (!columns.length) list.append(element("li", { class: "nothing" }, "No evidence yet."));
  const more = columns.length - shown.length;
  if (more > 0) {
    list.append(element("li", { class: "nothing" }, more === 1 ? "1 more column" : `${more} more columns`));
  }
  parts.replaceChildren(partsOf(shown));
}
