// Texts and numbers of the scene of the plane, and reading its points from a link.

import { element } from "../web/dom.js";
import { GAUSSIAN_METHODS, mistakesAmong, planeError, planeParameters, PLANE_EXTENT } from "./maths_plane.js";
import { limited, setData } from "./controls.js";

export const PLANE_NAMES = ["a", "b", "c"];
export const PLANE_LIMITS = [0, PLANE_EXTENT];
export const MAX_POINTS = 150;
export const METHOD_WORDS = {
  linear: ["Linear (LDA)", "One covariance for all classes: straight boundaries."],
  quadratic: ["Quadratic (QDA)", "One covariance per class: curved boundaries."],
  naive: ["Naive Bayes (Gaussians)", "Columns independent within a class: axis-parallel ellipses."],
  "naive-table": ["Naive Bayes (table)", "Each column cut into four parts, independent within a class."],
  "joint-table": ["Joint table", "Both columns cut into four parts, one probability for each cell."],
};
export const asPercent = (share) => `${(100 * share).toFixed(2)}%`;

// Show the errors of a panel: on its points and, of Gaussians, under its own and under those of the quadratic method.
export function showPlaneErrors(panel, points, best, truth) {
  const mistakes = mistakesAmong(points, panel.grid);
  const size = new Set(points.map(({ kind }) => kind)).size;
  const pairs = [
    ["Misclassified", `${mistakes} of ${points.length}: ${asPercent(mistakes / (points.length || 1))}`],
    ["Free parameters", String(size ? planeParameters(panel.method, size) : 0)],
  ];
  if (GAUSSIAN_METHODS.includes(panel.method)) pairs.push(...gaussianErrors(panel, best, truth));
  panel.mistakes = mistakes;
  panel.numbers.replaceChildren(
    ...pairs.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))),
  );
  setData(panel.node, { mistakes });
}

function gaussianErrors(panel, best, truth) {
  const isBest = panel.method === "quadratic";
  const own = isBest ? best : planeError(panel.gaussians);
  const under = isBest ? best : planeError(truth, panel.gaussians);
  const avoidable = Math.max(under.error - best.error, 0);
  setData(panel.node, { expected: own.error, within: own.within, under: under.error, avoidable });
  return [
    ["Error under its own Gaussians", asPercent(own.error)],
    ["Error under QDA’s Gaussians", asPercent(under.error)],
    ["of which avoidable (by QDA)", isBest ? "none" : asPercent(avoidable)],
  ];
}

// Return a note if the classes differ in the combination of the columns but not in each column, as in XOR.
export function interactionNote(panels, count) {
  const share = (method) => panels.find((panel) => panel.method === method).mistakes / (count || 1);
  if (Math.min(share("naive"), share("naive-table")) < 0.4 || share("joint-table") > 0.1) return "";
  return (
    "The classes differ in the combination of the columns, hardly in each column alone. The evidence of each column " +
    "is about 0 decibans, so naive models are left with the prior. QDA and the joint table model the combination."
  );
}

// Explain how errors are computed, how accurate they are, and which classes borrow a covariance.
export function planeNote(fit, within) {
  const accuracy = within < 1e-6 ? "less than 0.000001" : `about ${Number(within.toPrecision(1)).toFixed(6)}`;
  const borrowing = PLANE_NAMES.filter((_, k) => fit.borrowed[k] && fit.weights[k] > 0);
  const text =
    "If each class were exactly its own Gaussian, QDA would be the Bayes rule, with the lowest possible error. " +
    "Errors are integrated: exactly along horizontal lines, numerically across them, accurate to " +
    `${accuracy}.`;
  if (!borrowing.length) return text;
  return `${text} Too few points, or points on one line: class ${borrowing.join(" and class ")} borrows the pooled covariance.`;
}

// Read the points from a link; null if missing.
export function planePointsFrom(state) {
  if (!Array.isArray(state?.points)) return null;
  return state.points
    .slice(0, MAX_POINTS)
    .filter(
      (point) =>
        Array.isArray(point) && point.length === 3 && point.every(Number.isFinite) && [0, 1, 2].includes(point[2]),
    )
    .map(([x, y, kind]) => ({ x: limited(x, PLANE_LIMITS), y: limited(y, PLANE_LIMITS), kind }));
}
