// Gaussians and tables fitted to points of the plane, and the error of their rules.
// A point is {x, y, kind}; a Gaussian is {prior, mean: [x, y], xx, xy, yy}. A form is the log joint of a class. A grid
// has the forms of all classes for each of its cells, row by row; that of Gaussians has one cell.

import { normalMass, quadraticRoots } from "./maths_normal.js";

export const PLANE_EXTENT = 10;

// Methods with Gaussians differ in their covariances only.
export const GAUSSIAN_METHODS = ["linear", "quadratic", "naive"];
export const PLANE_METHODS = [...GAUSSIAN_METHODS, "naive-table", "joint-table"];

// Equal parts of each column in a table, and its smoothing.
const TABLE_PARTS = 4;
const TABLE_ALPHA = 1;

// Log joints that differ by less than this are equal but for rounding.
const TIE = 1e-9;

// A variance below this, in a plane of 10 × 10, is treated as zero.
const MIN_VARIANCE = 1e-4;

// A class whose squared correlation is above this lies on a line.
const MAX_CORRELATION = 0.999;

// Points and weights of Gauss's quadrature on −1 … 1.
const GAUSS_FOUR = [
  [-0.8611363115940526, 0.3478548451374538],
  [-0.3399810435848563, 0.6521451548625461],
  [0.3399810435848563, 0.6521451548625461],
  [0.8611363115940526, 0.3478548451374538],
];
const GAUSS_EIGHT = [
  [-0.9602898564975363, 0.1012285362903763],
  [-0.7966664774136267, 0.2223810344533745],
  [-0.525532409916329, 0.3137066458778873],
  [-0.1834346424956498, 0.362683783378362],
  [0.1834346424956498, 0.362683783378362],
  [0.525532409916329, 0.3137066458778873],
  [0.7966664774136267, 0.2223810344533745],
  [0.9602898564975363, 0.1012285362903763],
];

// Weight, mean and scatter of some points.
function momentsOf(points) {
  const weight = points.length;
  const mean = ["x", "y"].map((axis) => points.reduce((sum, point) => sum + point[axis], 0) / (weight || 1));
  const scatter = { xx: 0, xy: 0, yy: 0 };
  for (const { x, y } of points) {
    scatter.xx += (x - mean[0]) ** 2;
    scatter.xy += (x - mean[0]) * (y - mean[1]);
    scatter.yy += (y - mean[1]) ** 2;
  }
  return { weight, mean, ...scatter };
}

const isFlat = ({ xx, xy, yy }) =>
  !(xx > MIN_VARIANCE && yy > MIN_VARIANCE && xy * xy < MAX_CORRELATION * xx * yy);

// The Gaussians of each class: pooled is the covariance within classes over all rows, own that of each class (both
// divided by the number of rows), borrowed marks classes with too few or collinear points, which use the pooled one.
export function fitPlane(points, size) {
  const moments = Array.from({ length: size }, (_, k) => momentsOf(points.filter(({ kind }) => kind === k)));
  const share = (name) => moments.reduce((sum, part) => sum + part[name], 0) / (points.length || 1);
  let pooled = { xx: share("xx"), xy: share("xy"), yy: share("yy") };
  if (isFlat(pooled)) pooled = { xx: pooled.xx + 0.01, xy: 0, yy: pooled.yy + 0.01 };
  const own = moments.map(({ weight, xx, xy, yy }) => ({ xx: xx / weight, xy: xy / weight, yy: yy / weight }));
  const borrowed = own.map((covariance, k) => moments[k].weight < 3 || isFlat(covariance));
  return {
    pooled,
    borrowed,
    own: own.map((covariance, k) => (borrowed[k] ? pooled : covariance)),
    means: moments.map(({ mean }) => mean),
    weights: moments.map(({ weight }) => weight),
    priors: moments.map(({ weight }) => weight / (points.length || 1)),
  };
}

// The Gaussians by which a method decides.
export function gaussiansBy(fit, method) {
  return fit.means.map((mean, k) => {
    const covariance = method === "linear" ? fit.pooled : fit.own[k];
    return { prior: fit.priors[k], mean, ...covariance, xy: method === "naive" ? 0 : covariance.xy };
  });
}

// log(prior · density) of each class as [1, x, y, x², xy, y²] · coefficients; of a class without points −∞.
export function planeForms(gaussians) {
  return gaussians.map(({ prior, mean: [x, y], xx, xy, yy }) => {
    const determinant = xx * yy - xy * xy;
    const [a, b, c] = [(-0.5 * yy) / determinant, xy / determinant, (-0.5 * xx) / determinant];
    const constant = Math.log(prior) - Math.log(2 * Math.PI) - 0.5 * Math.log(determinant);
    return [constant + a * x * x + b * x * y + c * y * y, -2 * a * x - b * y, -2 * c * y - b * x, a, b, c];
  });
}

// The value of a form at a place.
export function formAt(form, x, y) {
  return form[0] + x * (form[1] + form[3] * x + form[4] * y) + y * (form[2] + form[5] * y);
}

// The part of a column that is cut into equal parts.
const partOf = (value, parts) => Math.min(Math.floor((value / PLANE_EXTENT) * parts), parts - 1);

// The grid of a table of both columns, each cut into equal parts: a probability per cell and class (joint), or per part
// and class (naive), multiplied.
export function tableGrid(points, size, joint) {
  const parts = Array.from({ length: TABLE_PARTS }, (_, k) => k);
  const classes = Array.from({ length: size }, (_, k) => points.filter(({ kind }) => kind === k));
  const share = (own, values, has) => (own.filter(has).length + TABLE_ALPHA) / (own.length + TABLE_ALPHA * values);
  const inColumn = (column) => ({ x }) => partOf(x, TABLE_PARTS) === column;
  const inRow = (row) => ({ y }) => partOf(y, TABLE_PARTS) === row;
  return parts.flatMap((row) =>
    parts.map((column) =>
      classes.map((own) => {
        const likelihood = joint
          ? share(own, TABLE_PARTS ** 2, (point) => inColumn(column)(point) && inRow(row)(point))
          : share(own, TABLE_PARTS, inColumn(column)) * share(own, TABLE_PARTS, inRow(row));
        return [Math.log((own.length / points.length) * likelihood), 0, 0, 0, 0, 0];
      }),
    ),
  );
}

// Return the free parameters of a method for this many classes, with the prior.
export function planeParameters(method, size) {
  const perClass = {
    linear: 2,
    quadratic: 5,
    naive: 4,
    "naive-table": 2 * (TABLE_PARTS - 1),
    "joint-table": TABLE_PARTS ** 2 - 1,
  }[method];
  return size * perClass + (method === "linear" ? 3 : 0) + size - 1;
}

// The class that is decided at a place; the first of equal ones.
export function decidedAt(grid, x, y) {
  const parts = Math.sqrt(grid.length);
  const forms = grid[partOf(y, parts) * parts + partOf(x, parts)];
  let best = 0;
  let most = formAt(forms[0], x, y);
  for (let k = 1; k < forms.length; k += 1) {
    const value = formAt(forms[k], x, y);
    if (value > most + TIE || most === -Infinity) [best, most] = [k, value];
  }
  return best;
}

// How many of the points are decided wrongly.
export function mistakesAmong(points, grid) {
  return points.filter(({ x, y, kind }) => decidedAt(grid, x, y) !== kind).length;
}

// Slice Gaussians at constant y: normal classes whose log priors are log densities of y.
function sliceAt(gaussians, y) {
  return gaussians.map(({ prior, mean, xx, xy, yy }) => ({
    mean: mean[0] + (xy / yy) * (y - mean[1]),
    spread: Math.sqrt(xx - (xy * xy) / yy),
    log: Math.log(prior) - 0.5 * Math.log(2 * Math.PI * yy) - (y - mean[1]) ** 2 / (2 * yy),
  }));
}

// The error on one line: exact, from roots of quadratics and normal tails.
function errorAtSlice(truth, rule, y) {
  const cut = sliceAt(rule, y);
  const points = [];
  for (let k = 1; k < cut.length; k += 1) {
    for (let other = 0; other < k; other += 1) points.push(...equalJoints(cut[k], cut[other]));
  }
  points.sort((one, other) => one - other);
  const classes = sliceAt(truth, y);
  let error = 0;
  for (let k = 0; k <= points.length; k += 1) {
    const [low, high] = [k ? points[k - 1] : -Infinity, k < points.length ? points[k] : Infinity];
    const decision = likeliestAt(cut, middleOf(low, high));
    classes.forEach(({ mean, spread, log }, c) => {
      if (c !== decision) error += Math.exp(log) * normalMass(low, high, mean, spread);
    });
  }
  return error;
}

// Where two classes of a slice are equally likely.
function equalJoints(one, other) {
  const away = other.mean - one.mean;
  const [sharp, sharper] = [0.5 / one.spread ** 2, 0.5 / other.spread ** 2];
  const height = one.log - other.log + Math.log(other.spread / one.spread);
  return quadraticRoots(sharper - sharp, -2 * away * sharper, away * away * sharper + height).map((t) => one.mean + t);
}

// A point inside an interval that may have no ends.
function middleOf(low, high) {
  if (low === -Infinity) return high === Infinity ? 0 : high - 1;
  return high === Infinity ? low + 1 : 0.5 * (low + high);
}

// The class of a slice that is decided at x.
function likeliestAt(cut, x) {
  let [best, most] = [0, -Infinity];
  cut.forEach(({ mean, spread, log }, k) => {
    const value = log - Math.log(spread) - 0.5 * ((x - mean) / spread) ** 2;
    if (value > most) [best, most] = [k, value];
  });
  return best;
}

// The error under some true Gaussians of the rule that others decide by; with the same ones it is the Bayes error. It is
// exact along x and integrated along y; `within` is the difference to a coarser integration.
export function planeError(truth, rule = truth) {
  const there = truth.filter(({ prior }) => prior > 0);
  const steps = Array.from({ length: 17 }, (_, k) => k - 8);
  const ends = there.flatMap(({ mean, yy }) => steps.map((step) => mean[1] + step * Math.sqrt(yy)));
  ends.sort((one, other) => one - other);
  const kept = truth.flatMap(({ prior }, k) => (prior > 0 ? [k] : []));
  const [truths, used] = [kept.map((k) => truth[k]), kept.map((k) => rule[k])];
  const integral = (nodes) => {
    let sum = 0;
    for (let k = 0; k + 1 < ends.length; k += 1) {
      const [middle, half] = [0.5 * (ends[k] + ends[k + 1]), 0.5 * (ends[k + 1] - ends[k])];
      if (half > 0)
        for (const [at, weight] of nodes) sum += half * weight * errorAtSlice(truths, used, middle + half * at);
    }
    return sum;
  };
  if (there.length < 2) return { error: 0, within: 0 };
  const [coarse, error] = [integral(GAUSS_FOUR), integral(GAUSS_EIGHT)];
  return { error, within: Math.abs(error - coarse) };
}

// The line on which a class is as likely as the best of the others, as pairs of points on a grid.
export function contourOf(forms, kind, extent, cells) {
  const side = (x, y) => {
    const others = forms.reduce((most, form, k) => (k === kind ? most : Math.max(most, formAt(form, x, y))), -Infinity);
    return formAt(forms[kind], x, y) - others;
  };
  const at = (k) => (extent * k) / cells;
  const values = Array.from({ length: cells + 1 }, (_, row) =>
    Array.from({ length: cells + 1 }, (_, column) => side(at(column), at(row))),
  );
  const lines = [];
  for (let row = 0; row < cells; row += 1) {
    for (let column = 0; column < cells; column += 1) {
      const corners = [
        [column, row],
        [column + 1, row],
        [column + 1, row + 1],
        [column, row + 1],
      ];
      const crossed = corners.flatMap(([i, j], k) => {
        const [p, q] = corners[(k + 1) % 4];
        const [here, there] = [values[j][i], values[q][p]];
        if (here > TIE === there > TIE) return [];
        const share = here / (here - there);
        return [[at(i + share * (p - i)), at(j + share * (q - j))]];
      });
      for (let k = 0; k + 1 < crossed.length; k += 2) lines.push([crossed[k], crossed[k + 1]]);
    }
  }
  return lines;
}
