// Evidence for one class against another: terms of a sum, and their waterfall.

import { DECIBANS, drawn, shortened, signed } from "./dom.js";
import { bestFirst } from "./posterior.js";

// Score a row: the posterior, the classes in order (the predicted one first), and the terms of the evidence for one class
// against another in decibans: the prior, the columns and, if it changes the row, the limit (each with its role).
export function scorerAnswer(scorer, row) {
  const found = scorer.columnEvidence(row);
  const difference = (values, best, other) => DECIBANS * (values[best] - values[other]) || 0;
  const posterior = scorer.predictProba(row);
  return {
    posterior,
    order: bestFirst(posterior, scorer.classes.indexOf(scorer.predict(row))),
    impossible: scorer.predictJointLogProba(row).every((value) => value === -Infinity),
    terms(best, other) {
      const start = [{ name: "prior", value: difference(scorer.logPrior, best, other), role: "prior" }];
      const inFavor = (values) => difference(values, best, other);
      return [...start, ...found.map(({ name, values, own, joint, correction }, k) => ({ name, value: inFavor(values),
        role: k < scorer.columns.length ? "column" : "limit", own: inFavor(own), joint: inFavor(joint), correction: inFavor(correction) }))];
    },
  };
}

// Return pairs of label and value: the prior, the columns with the strongest evidence, the other columns as one sum, the
// limit.
export function rolledUp(terms, maxTerms) {
  const ofRole = (role) => terms.filter((term) => term.role === role);
  const columns = ofRole("column").filter((term) => term.value !== 0)
    .sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const shown = columns.length === maxTerms + 1 ? columns : columns.slice(0, maxTerms); // a rest of one takes as much room
  const rest = columns.slice(shown.length);
  const others = rest.length ? [{ name: `${rest.length} others`, value: rest.reduce((sum, { value }) => sum + value, 0) }] : [];
  return [...ofRole("prior"), ...shown, ...others, ...ofRole("limit")].map(({ name, value }) => [name, value]);
}

const sumOf = (terms) => terms.reduce((sum, [, value]) => sum + value, 0);

// Return the start and end of each bar; an infinite bar is clipped, longer than all others together.
function barsOf(terms) {
  const longest = 10 + terms.reduce((sum, [, value]) => sum + (Number.isFinite(value) ? Math.abs(value) : 0), 0);
  const ends = [0];
  for (const [, value] of terms) ends.push(ends[ends.length - 1] + Math.min(Math.max(value, -longest), longest));
  const bars = terms.map(([name, value], k) => [name, ends[k], ends[k + 1], value]);
  return [...bars, ["sum", 0, ends[ends.length - 1], sumOf(terms)]];
}

// Draw the terms as a waterfall that ends with the sum. chart: width, maximum space for labels, width of a letter of
// them, space for numbers, height of a bar, colors for and against.
export function waterfall(terms, title, chart) {
  const { wide, letter, number, step } = chart;
  const bars = barsOf(terms);
  const longest = Math.max(...bars.map(([name]) => [...name].length));
  const label = Math.min(chart.label, 12 + Math.floor(letter * longest)); // short labels leave more room for the bars
  const edges = bars.flatMap(([, start, end]) => [start, end]);
  const [low, high] = [Math.min(...edges), Math.max(...edges)];
  const along = (value) => label + ((wide - label - number) * (value - low)) / (high - low || 1);
  const tall = step * bars.length + 6;
  const svg = drawn("svg", { viewBox: `0 0 ${wide} ${tall}`, width: wide, height: tall, role: "img",
    "aria-label": `${title}: ${bars.map(([name, , , value]) => `${name} ${signed(value)}`).join(", ")}` });
  svg.append(drawn("line", { class: "zero", x1: along(0), x2: along(0), y1: 0, y2: tall }));
  bars.forEach(([name, start, end, value], k) => {
    const middle = step * k + step / 2 + 2;
    svg.append(drawn("text", { class: "end", x: label - 6, y: middle + 4 }, shortened(name, Math.floor((chart.label - 6) / letter))));
    const fill = value >= 0 ? chart.for : chart.against;
    if (Number.isFinite(value)) {
      svg.append(drawn("rect", { x: Math.min(along(start), along(end)), y: middle - 6, height: 12,
        width: Math.max(Math.abs(along(end) - along(start)), 0.6), fill }));
    } else if (!Number.isNaN(value)) { // an arrow for infinite evidence
      const [from, tip] = [along(start), along(end)];
      const neck = tip - 9 * Math.sign(value);
      svg.append(drawn("path", { fill,
        d: `M${from},${middle - 4}H${neck}V${middle - 8}L${tip},${middle}L${neck},${middle + 8}V${middle + 4}H${from}Z` }));
    }
    svg.append(drawn("text", { class: "end", x: wide - 4, y: middle + 4 }, signed(value)));
  });
  return svg;
}
