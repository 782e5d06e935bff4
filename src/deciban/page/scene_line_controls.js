// Fields and numbers of the scene of classes on a line.

import { element } from "../web/dom.js";
import { classDot, colorKey, namedTable, numberField } from "./controls.js";
import { ratioThreshold } from "./maths_line.js";
import { significant } from "./maths_belief.js";
import {
  COST_LIMITS,
  edgesInView,
  LINE_NAMES,
  LINE_VIEW,
  MEAN_LIMITS,
  PRIOR_LIMITS,
  SPREAD_LIMITS,
} from "./scene_line_state.js";

const sixDecimals = (value) => value.toFixed(6);
export const shortNumber = (value) => String(Number(value.toFixed(4)));
const truthHead = (classes) => ["", ...classes.map((_, c) => `true ${LINE_NAMES[c]}`)];

// The boundaries on the axis; how many there are elsewhere.
function edgesText(rule) {
  const seen = edgesInView(rule).map((edge) => edge.toFixed(4));
  const others = rule.edges.length - seen.length;
  return [...seen, ...(others ? [`${others} outside ${LINE_VIEW.join(" to ")}`] : [])].join(", ") || "none";
}

// Builds a card for each class and the table of costs; returns their fields.
export function buildLineControls(home, { read, setClass, setPrior, setCost }) {
  const fields = [];
  const field = (options) => {
    fields.push(numberField({ step: "any", ...options }));
    return fields.at(-1).node;
  };
  const classCard = (_, k) => {
    const mean = field({
      label: "mean",
      limits: MEAN_LIMITS,
      read: () => read().classes[k].mean,
      write: (value) => setClass(k, { mean: value }),
    });
    const spread = field({
      label: "std. deviation",
      limits: SPREAD_LIMITS,
      read: () => read().classes[k].spread,
      write: (value) => setClass(k, { spread: value }),
    });
    const prior = field({
      label: "prior",
      limits: PRIOR_LIMITS,
      read: () => read().classes[k].prior,
      write: (value) => setPrior(k, value),
      show: shortNumber,
    });
    return element(
      "fieldset",
      { class: "card" },
      element("legend", {}, classDot(k), `Class ${LINE_NAMES[k]}`),
      element("div", { class: "fields" }, mean, spread, prior),
    );
  };
  const costCell = (d, c) =>
    element(
      "td",
      {},
      field({
        label: `Cost of deciding ${LINE_NAMES[d]} if the true class is ${LINE_NAMES[c]}`,
        hidden: true,
        limits: COST_LIMITS,
        read: () => read().loss[d][c],
        write: (cost) => setCost(d, c, cost),
      }),
    );
  const { classes, loss } = read();
  const cards = classes.map(classCard);
  const costs = namedTable({
    kind: "losses",
    head: truthHead(classes),
    rows: loss.map((row, d) => [`decide ${LINE_NAMES[d]}`, ...row.map((_, c) => costCell(d, c))]),
  });
  home.replaceChildren(
    ...cards,
    element(
      "fieldset",
      { class: classes.length > 2 ? "card wide" : "card" },
      element("legend", {}, "Costs"),
      element("div", { class: "scroll" }, costs),
    ),
  );
  return fields;
}

const measureOf = ({ zeroOne }) => (zeroOne ? "error" : "risk");

// Shows boundaries, errors and areas.
export function showLineNumbers({ tiles, keyHome, tableHome }, found) {
  const { classes, areas, rule, best, risk, least, avoidable, byHand } = found;
  const pairs = [
    [best.edges.length > 1 ? "Best boundaries" : "Best boundary", edgesText(best)],
    [`Bayes ${measureOf(found)}`, sixDecimals(least)],
  ];
  const byHandPairs = [
    ["Your boundary", edgesText(rule)],
    [`Its ${measureOf(found)}`, sixDecimals(risk)],
    ["of which avoidable", sixDecimals(avoidable), "stressed"],
  ];
  tiles.set(byHand ? [...pairs, ...byHandPairs] : pairs);
  const wrong = classes.flatMap((_, c) =>
    areas.flatMap((row, d) => {
      const text = `${LINE_NAMES[c]} classified as ${LINE_NAMES[d]}: ${sixDecimals(row[c])}`;
      return c === d ? [] : [[`area class-${c}`, text]];
    }),
  );
  const hatched = byHand ? [["hatched", `avoidable: ${sixDecimals(avoidable)}`]] : [];
  keyHome.replaceChildren(found.plain ? "" : colorKey([...wrong, ...hatched]));
  const areaCell = (d) => (area, c) =>
    element("td", { class: c === d ? "right-cell" : "wrong-cell" }, sixDecimals(area));
  tableHome.replaceChildren(
    namedTable({
      caption: "Probability of each decision and true class",
      head: truthHead(classes),
      rows: areas.map((row, d) => [`decide ${LINE_NAMES[d]}`, ...row.map(areaCell(d))]),
    }),
  );
}

const fourDigits = (value) => significant(value, 4);

// Shows what is read off at x: densities, posteriors and expected costs, and the decision by the likelihood ratio.
export function showReading(home, { classes, loss, x, reading }) {
  const { densities, joint, posterior, risks } = reading;
  const best = risks.indexOf(Math.min(...risks));
  const strongIf = (holds, text) => element("td", {}, holds ? element("strong", {}, text) : text);
  const rows = classes.map((_, k) => [
    element("span", {}, classDot(k), LINE_NAMES[k]),
    ...[densities, joint].map((part) => fourDigits(part[k])),
    strongIf(posterior[k] === Math.max(...posterior), posterior[k].toFixed(6)),
    strongIf(k === best, fourDigits(risks[k])),
  ]);
  const at = shortNumber(x);
  const table = namedTable({
    caption: `Read off at x = ${at}; the cost is that of deciding for the class`,
    head: ["class", "p(x | class)", "· prior", "posterior", "cost"],
    rows,
    foot: [["p(x), the sum", "", fourDigits(joint.reduce((sum, part) => sum + part, 0)), "1", ""]],
  });
  const threshold = ratioThreshold(classes, loss);
  const ratio = densities[0] / densities[1];
  const why =
    threshold === null || Number.isNaN(ratio)
      ? `Decide ${LINE_NAMES[best]}: its expected cost is lowest.`
      : `Decide ${LINE_NAMES[best]}: the likelihood ratio p(${at} | a) / p(${at} | b) = ${fourDigits(ratio)} is ` +
        `${ratio > threshold ? "above" : ratio === threshold ? "equal to" : "below"} ${fourDigits(threshold)}, ` +
        "the ratio of the priors P(b) / P(a) times that of the costs.";
  home.replaceChildren(table, element("p", {}, why));
}

// Summarize the results in one or two sentences.
export function lineSentence(found) {
  const { best, rule, least, risk, avoidable, byHand } = found;
  const where = best.edges.length ? `Best boundary at ${edgesText(best)}` : "No boundary";
  const first = `${where}. Bayes ${measureOf(found)} ${sixDecimals(least)}.`;
  if (!byHand) return first;
  return (
    `${first} Your boundary at ${edgesText(rule)}: ${measureOf(found)} ${sixDecimals(risk)}, ` +
    `of which ${sixDecimals(avoidable)} is avoidable.`
  );
}
