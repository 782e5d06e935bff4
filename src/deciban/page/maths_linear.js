// Naive Bayes with shared variances as a linear model, beside logistic regression of the same points.
// A line is {w: [w₁, w₂], b}: the log-odds of the second class are w · x + b.

import { normalNumber, uniformNumbers } from "./maths_examples.js";
import { normalDensity } from "./maths_normal.js";
import { fitPlane, planeForms } from "./maths_plane.js";

// The true classes: equal priors and variances; only the means differ.
export const TRUE_MEANS = [
  [4, 4.5],
  [6, 5.5],
];
const TRUE_SPREAD = 1.3;

// Weight of ½ |w|² against the log loss, so that logistic regression has a solution for separable points.
const PENALTY = 1e-3;
const MAX_STEPS = 100;

// Draw points of both classes, {x, y, kind}, whose columns have this correlation within each class.
export function drawPoints(count, correlation, seed) {
  const uniform = uniformNumbers(1000 + 7919 * seed);
  const other = Math.sqrt(1 - correlation ** 2);
  return TRUE_MEANS.flatMap(([x, y], kind) =>
    Array.from({ length: count }, () => {
      const [first, second] = [normalNumber(uniform), normalNumber(uniform)];
      return { x: x + TRUE_SPREAD * first, y: y + TRUE_SPREAD * (correlation * first + other * second), kind };
    }),
  );
}

// The Gaussians of naive Bayes with one variance per column for both classes.
export function naiveGaussians(points) {
  const { means, priors, pooled } = fitPlane(points, 2);
  return means.map((mean, k) => ({ prior: priors[k], mean, xx: pooled.xx, xy: 0, yy: pooled.yy }));
}

// The line of two Gaussians with the same covariance: their quadratic terms cancel.
export function lineOf(gaussians) {
  const [a, b] = planeForms(gaussians);
  return { w: [b[1] - a[1], b[2] - a[2]], b: b[0] - a[0] };
}

// The line of the true classes.
export function trueLine(correlation) {
  const variance = TRUE_SPREAD ** 2;
  return lineOf(TRUE_MEANS.map((mean) => ({ prior: 0.5, mean, xx: variance, xy: correlation * variance, yy: variance })));
}

export const scoreAt = ({ w, b }, x, y) => w[0] * x + w[1] * y + b;
export const logistic = (score) => 1 / (1 + Math.exp(-score));

// log(1 + exp(score)) without overflow.
const softplus = (score) => Math.max(score, 0) + Math.log1p(Math.exp(-Math.abs(score)));

// Solve a symmetric positive-definite system by elimination.
function solved(matrix, right) {
  const rows = matrix.map((row, k) => [...row, right[k]]);
  rows.forEach((row, k) => {
    for (const lower of rows.slice(k + 1)) {
      const factor = lower[k] / row[k];
      row.forEach((value, j) => { lower[j] -= factor * value; });
    }
  });
  const found = right.map(() => 0);
  for (let k = right.length - 1; k >= 0; k -= 1) {
    const known = found.reduce((sum, value, j) => (j > k ? sum + rows[k][j] * value : sum), 0);
    found[k] = (rows[k].at(-1) - known) / rows[k][k];
  }
  return found;
}

// Fit logistic regression by Newton's method; steps that do not lower the loss are halved.
export function logisticLine(points) {
  const features = points.map(({ x, y }) => [x, y, 1]);
  const scoresOf = (given) => features.map((row) => row.reduce((sum, value, j) => sum + value * given[j], 0));
  const lossOf = (given) =>
    scoresOf(given).reduce((sum, score, i) => sum + softplus(points[i].kind ? -score : score), 0) +
    0.5 * PENALTY * (given[0] ** 2 + given[1] ** 2);
  let weights = [0, 0, 0];
  let loss = lossOf(weights);
  for (let step = 0; step < MAX_STEPS; step += 1) {
    const gradient = [PENALTY * weights[0], PENALTY * weights[1], 0];
    const curvature = [[PENALTY, 0, 0], [0, PENALTY, 0], [0, 0, 1e-12]];
    scoresOf(weights).forEach((score, i) => {
      const chance = logistic(score);
      for (let j = 0; j < 3; j += 1) {
        gradient[j] += (chance - points[i].kind) * features[i][j];
        for (let k = 0; k < 3; k += 1) curvature[j][k] += chance * (1 - chance) * features[i][j] * features[i][k];
      }
    });
    const direction = solved(curvature, gradient);
    let size = 1;
    let next = weights.map((weight, j) => weight - direction[j]);
    while (lossOf(next) > loss && size > 1e-9) {
      size /= 2;
      next = weights.map((weight, j) => weight - size * direction[j]);
    }
    const lower = lossOf(next);
    if (!(lower < loss)) break;
    [weights, loss] = [next, lower];
  }
  return { w: weights.slice(0, 2), b: weights[2] };
}

// The calculation of naive Bayes at a point: prior and density of each column per class, joint, and posterior of the second.
export function naiveSteps(gaussians, x, y) {
  const steps = [
    gaussians.map(({ prior }) => prior),
    gaussians.map(({ mean, xx }) => normalDensity(x, mean[0], Math.sqrt(xx))),
    gaussians.map(({ mean, yy }) => normalDensity(y, mean[1], Math.sqrt(yy))),
  ];
  const joint = [0, 1].map((k) => steps.reduce((product, step) => product * step[k], 1));
  return { steps, joint, posterior: joint[1] / (joint[0] + joint[1]) };
}
