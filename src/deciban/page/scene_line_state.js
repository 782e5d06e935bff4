// State of the scene of classes on a line: examples, results, and reading it from a link.

import { areasOf, bestRule, isZeroOne, readingAt, riskOf, zeroOneLoss } from "./maths_line.js";
import { numberOr } from "./controls.js";

export const LINE_VIEW = [0, 40];
export const LINE_NAMES = ["a", "b", "c"];
export const MEAN_LIMITS = LINE_VIEW;
export const SPREAD_LIMITS = [0.5, 12];
export const PRIOR_LIMITS = [0, 1];
export const COST_LIMITS = [0, 1e6];
export const FIRST_X = 20;
const MAX_EDGES = 6;
export const lineClass = (mean, spread, prior) => ({ mean, spread, prior });

export const LINE_EXAMPLES = {
  Letters: { classes: [lineClass(15, 4, 0.75), lineClass(25, 4, 0.25)] },
  "Equal priors": { classes: [lineClass(15, 4, 0.5), lineClass(25, 4, 0.5)] },
  "Unequal costs": {
    classes: [lineClass(15, 4, 0.75), lineClass(25, 4, 0.25)],
    loss: [
      [0, 10],
      [1, 0],
    ],
  },
  "Different variances": { classes: [lineClass(20, 2, 0.5), lineClass(20, 6, 0.5)] },
  "Three classes": { classes: [lineClass(10, 3, 0.3), lineClass(19, 5, 0.4), lineClass(29, 3, 0.3)] },
};

// Return the boundaries of a rule that are on the axis.
export function edgesInView({ edges }) {
  return edges.filter((edge) => LINE_VIEW[0] <= edge && edge <= LINE_VIEW[1]);
}

// Set one prior; the others keep their ratios.
export function withPrior(classes, k, prior) {
  const others = 1 - classes[k].prior;
  return classes.map((part, c) => {
    if (c === k) return { ...part, prior };
    return { ...part, prior: others > 0 ? (part.prior * (1 - prior)) / others : (1 - prior) / (classes.length - 1) };
  });
}

// Compute all results from classes, a loss, a value of x to read off, and, optionally, a rule set by hand.
export function lineResults({ classes, loss, hand, x, plain }) {
  const best = bestRule(classes, loss);
  const rule = hand || best;
  const areas = areasOf(classes, rule);
  const least = riskOf(areasOf(classes, best), loss);
  const risk = riskOf(areas, loss);
  return {
    classes,
    loss,
    x,
    plain,
    reading: readingAt(classes, loss, x),
    best,
    rule,
    areas,
    least,
    risk,
    byHand: Boolean(hand),
    zeroOne: isZeroOne(loss),
    avoidable: hand ? Math.max(risk - least, 0) : 0,
    error: riskOf(areas, zeroOneLoss(classes.length)),
  };
}

// Read the scene from a link; null if it is invalid.
export function lineStateFrom(state) {
  const given = Array.isArray(state?.classes) ? state.classes.slice(0, 3) : [];
  if (given.length < 2 || !given.every(Array.isArray)) return null;
  const classes = given.map(([mean, spread, prior]) =>
    lineClass(numberOr(mean, MEAN_LIMITS, 20), numberOr(spread, SPREAD_LIMITS, 4), numberOr(prior, PRIOR_LIMITS, 0)),
  );
  const whole = classes.reduce((sum, { prior }) => sum + prior, 0);
  if (Math.abs(whole - 1) > 1e-9)
    classes.forEach((part) => {
      part.prior = whole > 0 ? part.prior / whole : 1 / classes.length;
    });
  const loss = zeroOneLoss(classes.length).map((row, d) =>
    row.map((cost, c) => numberOr(state.loss?.[d]?.[c], COST_LIMITS, cost)),
  );
  const x = numberOr(state.x, LINE_VIEW, FIRST_X);
  return { classes, loss, x, plain: state.plain === true, hand: handFrom(state.hand, classes.length) };
}

function handFrom(hand, size) {
  const { edges, decisions } = hand || {};
  if (!Array.isArray(edges) || !Array.isArray(decisions) || edges.length > MAX_EDGES) return null;
  const sorted = edges.every((edge, k) => Number.isFinite(edge) && (k === 0 || edges[k - 1] <= edge));
  const known = decisions.every((decision) => Number.isInteger(decision) && decision >= 0 && decision < size);
  return sorted && known && decisions.length === edges.length + 1 ? { edges, decisions } : null;
}
