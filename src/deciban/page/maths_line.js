// Decisions on one number: normal classes, priors and losses; where the best rule changes, and what any rule costs.
// A class is {mean, spread, prior}; a loss is a table [decision][truth]; a rule is {edges, decisions}, from the left.

import { cubicRoots, normalDensity, normalMass, quadraticRoots, signChanges } from "./maths_normal.js";

// Regions of less probability than this are joined to their neighbors.
const MIN_REGION = 1e-14;

// Standard deviations beyond which a class has no probability.
const REACH = 40;

// Every mistake costs 1.
export function zeroOneLoss(size) {
  return Array.from({ length: size }, (_, d) => Array.from({ length: size }, (_, c) => (d === c ? 0 : 1)));
}

// Whether every mistake costs 1 and nothing else costs anything.
export function isZeroOne(loss) {
  return loss.every((row, d) => row.every((cost, c) => cost === (d === c ? 0 : 1)));
}

// The sign of Σ weight · density at x, from terms {weight, mean, spread}; it does not underflow.
function signOfSum(terms, x) {
  const logs = terms.map(({ mean, spread }) => -0.5 * ((x - mean) / spread) ** 2 - Math.log(spread));
  const highest = Math.max(...logs.map((log, k) => log + Math.log(Math.abs(terms[k].weight))));
  return terms.reduce(
    (sum, { weight }, k) => sum + Math.sign(weight) * Math.exp(logs[k] + Math.log(Math.abs(weight)) - highest),
    0,
  );
}

// The terms by which the risk of one decision exceeds that of another.
function riskDifference(classes, loss, one, other) {
  return classes
    .map(({ mean, spread, prior }, c) => ({ mean, spread, weight: (loss[one][c] - loss[other][c]) * prior }))
    .filter(({ weight }) => weight !== 0);
}

// Where two weighted densities are equal: the roots of a quadratic, about the mean of the first.
function crossingsOfTwo([first, second]) {
  if (first.weight * second.weight > 0) return [];
  const away = second.mean - first.mean;
  const height = Math.log((Math.abs(first.weight) * second.spread) / (Math.abs(second.weight) * first.spread));
  const [sharp, sharper] = [1 / (2 * first.spread ** 2), 1 / (2 * second.spread ** 2)];
  return quadraticRoots(sharper - sharp, -2 * away * sharper, away * away * sharper + height).map(
    (t) => first.mean + t,
  );
}

// Where a sum of three weighted densities is 0. Divided by the third it is w₁ exp(u₁) + w₂ exp(u₂) + w₃, whose slope is 0
// where v = w₁ u₁′ exp(u₁ − u₂) + w₂ u₂′ is; and v / u₂′ turns only at the roots of a cubic. So the roots of each
// divide the next into pieces that rise or fall, and no root is missed.
function crossingsOfThree(terms, low, high) {
  if (terms.every(({ weight }) => weight > 0) || terms.every(({ weight }) => weight < 0)) return [];
  const last = terms[2];
  const slopes = terms.map(({ mean, spread }) => {
    // of u₁, u₂ and 0: a x + b
    return [1 / last.spread ** 2 - 1 / spread ** 2, mean / spread ** 2 - last.mean / last.spread ** 2];
  });
  const [[a, b], [c, d]] = slopes;
  const slopeAt = ([steep, base], x) => steep * x + base;
  const [e, f] = [a - c, b - d];
  const apart = (x) => {
    // log of the ratio of the first two densities
    const [one, two] = terms;
    return (
      Math.log(two.spread / one.spread) -
      0.5 * ((x - one.mean) / one.spread) ** 2 +
      0.5 * ((x - two.mean) / two.spread) ** 2
    );
  };
  const slopeSign = (x) => {
    const most = Math.max(apart(x), 0);
    return (
      terms[0].weight * slopeAt(slopes[0], x) * Math.exp(apart(x) - most) +
      terms[1].weight * slopeAt(slopes[1], x) * Math.exp(-most)
    );
  };
  const cubic = [
    a * c * e,
    a * c * f + (a * d + b * c) * e,
    (a * d + b * c) * f + b * d * e,
    b * d * f + a * d - b * c,
  ];
  const bends = [...cubicRoots(cubic, low, high), ...quadraticRoots(0, c, d)].filter((x) => low < x && x < high);
  const turns = signChanges(slopeSign, [low, ...bends.sort((x, y) => x - y), high]);
  return signChanges((x) => signOfSum(terms, x), [low, ...turns.filter((x) => low < x && x < high), high]);
}

// Where two decisions cost the same.
function equalRisks(terms, low, high) {
  if (terms.length === 2) return crossingsOfTwo(terms);
  return terms.length === 3 ? crossingsOfThree(terms, low, high) : [];
}

// The decision of least risk at x; the first of equal ones.
function leastRiskAt(classes, loss, x) {
  let best = 0;
  for (let d = 1; d < loss.length; d += 1) {
    const terms = riskDifference(classes, loss, d, best);
    if (terms.length && signOfSum(terms, x) < 0) best = d;
  }
  return best;
}

// The rule of least risk, for up to three classes. Where it changes its decision is exact, not looked up on a grid.
export function bestRule(classes, loss) {
  const low = Math.min(...classes.map(({ mean, spread }) => mean - REACH * spread));
  const high = Math.max(...classes.map(({ mean, spread }) => mean + REACH * spread));
  const points = [];
  for (let d = 1; d < loss.length; d += 1) {
    for (let other = 0; other < d; other += 1) {
      points.push(...equalRisks(riskDifference(classes, loss, d, other), low, high));
    }
  }
  const within = points.filter((x) => low < x && x < high).sort((one, other) => one - other);
  const ends = [low, ...within, high];
  const rule = { edges: [], decisions: [] };
  for (let k = 0; k + 1 < ends.length; k += 1) {
    if (!(ends[k] < ends[k + 1])) continue;
    const decision = leastRiskAt(classes, loss, 0.5 * (ends[k] + ends[k + 1]));
    if (rule.decisions.at(-1) === decision) continue;
    if (rule.decisions.length) rule.edges.push(ends[k]);
    rule.decisions.push(decision);
  }
  return withoutEmptyRegions(classes, rule);
}

// The intervals of a rule, {low, high, decision}.
export function regionsOf({ edges, decisions }) {
  return decisions.map((decision, k) => ({
    decision,
    low: k ? edges[k - 1] : -Infinity,
    high: k < edges.length ? edges[k] : Infinity,
  }));
}

// The probability of each class with its prior in an interval.
function massesIn(classes, low, high) {
  return classes.map(({ mean, spread, prior }) => prior * normalMass(low, high, mean, spread));
}

// A rule without regions in which nothing ever lies: they join their neighbors.
function withoutEmptyRegions(classes, rule) {
  const total = classes.reduce((sum, { prior }) => sum + prior, 0);
  const kept = [];
  for (const region of regionsOf(rule)) {
    const mass = massesIn(classes, region.low, region.high).reduce((sum, part) => sum + part, 0);
    const empty = !(mass > MIN_REGION * total);
    const last = kept.at(-1);
    if (last && (empty || last.empty || last.decision === region.decision)) {
      kept[kept.length - 1] = {
        low: last.low,
        decision: empty ? last.decision : region.decision,
        empty: empty && last.empty,
      };
    } else kept.push({ low: region.low, decision: region.decision, empty });
  }
  return { edges: kept.slice(1).map(({ low }) => low), decisions: kept.map(({ decision }) => decision) };
}

// The probability of each decision with each truth, [decision][truth]; off the diagonal these are the error areas.
export function areasOf(classes, rule, size = classes.length) {
  const areas = Array.from({ length: size }, () => classes.map(() => 0));
  for (const { low, high, decision } of regionsOf(rule)) {
    massesIn(classes, low, high).forEach((mass, c) => {
      areas[decision][c] += mass;
    });
  }
  return areas;
}

// The expected loss of a rule with these areas.
export function riskOf(areas, loss) {
  return areas.reduce((sum, row, d) => sum + row.reduce((part, area, c) => part + (area && area * loss[d][c]), 0), 0);
}

// What is known at x: for each class its density, density times prior and posterior; the expected cost of each decision.
export function readingAt(classes, loss, x) {
  const densities = classes.map(({ mean, spread }) => normalDensity(x, mean, spread));
  const logs = classes.map(({ mean, spread, prior }) => Math.log(prior / spread) - 0.5 * ((x - mean) / spread) ** 2);
  const highest = Math.max(...logs); // densities may underflow, posteriors do not
  const shares = logs.map((log) => Math.exp(log - highest));
  const whole = shares.reduce((sum, share) => sum + share, 0);
  const posterior = shares.map((share) => share / whole);
  return {
    densities,
    joint: densities.map((density, c) => density * classes[c].prior),
    posterior,
    risks: loss.map((row) => row.reduce((sum, cost, c) => sum + cost * posterior[c], 0)),
  };
}

// The likelihood ratio of the first of two classes above which the first decision costs less; null if costs are unusual.
export function ratioThreshold(classes, loss) {
  const [one, other] = [loss[0][1] - loss[1][1], loss[1][0] - loss[0][0]];
  if (classes.length !== 2 || !(one > 0 && other > 0 && classes[0].prior > 0)) return null;
  return (one * classes[1].prior) / (other * classes[0].prior);
}

// What each decision costs at x, times the density there: curves whose area is a risk.
export function riskDensities(classes, loss, x) {
  const joint = classes.map(({ mean, spread, prior }) => prior * normalDensity(x, mean, spread));
  return loss.map((row) => row.reduce((sum, cost, c) => sum + cost * joint[c], 0));
}
