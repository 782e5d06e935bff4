// Charts of classes on a line: densities, regions and error areas; posteriors; expected costs.

import { drawn } from "../web/dom.js";
import { normalDensity } from "./maths_normal.js";
import { readingAt, regionsOf, riskDensities } from "./maths_line.js";
import { bottomTicks, leftAxis, niceTicks, pathThrough } from "./controls.js";
import { edgesInView, LINE_NAMES, LINE_VIEW } from "./scene_line_state.js";

const LINE_PLACES = 240;
const LINE_MARGIN = { left: 40, right: 14, top: 48, bottom: 40 };

// From values to places on the picture, and back.
export function lineScale(width) {
  const [low, high] = LINE_VIEW;
  const room = width - LINE_MARGIN.left - LINE_MARGIN.right;
  return {
    x: (value) => LINE_MARGIN.left + ((value - low) / (high - low)) * room,
    value: (place) => low + ((place - LINE_MARGIN.left) / room) * (high - low),
  };
}

const densityOf = ({ mean, spread }, x) => normalDensity(x, mean, spread);
const jointOf = (part, x) => part.prior * densityOf(part, x);

// Values between two ends, close enough for a smooth curve.
function valuesBetween(low, high) {
  const [from, to] = [Math.max(low, LINE_VIEW[0]), Math.min(high, LINE_VIEW[1])];
  if (!(from < to)) return [];
  const count = Math.max(2, Math.ceil((LINE_PLACES * (to - from)) / (LINE_VIEW[1] - LINE_VIEW[0])));
  return Array.from({ length: count + 1 }, (_, k) => from + ((to - from) * k) / count);
}

// The area between two curves over an interval.
function bandPath(scale, low, high, upper, lower) {
  const values = valuesBetween(low, high);
  if (!values.length) return "";
  const above = values.map((value) => [scale.x(value), upper(value)]);
  const below = values.map((value) => [scale.x(value), lower(value)]).reverse();
  return `${pathThrough([...above, ...below])}Z`;
}

// The intervals in which two rules decide differently, {low, high, taken, best}.
export function disagreements(rule, best) {
  return regionsOf(rule).flatMap((mine) =>
    regionsOf(best).flatMap((right) => {
      const [low, high] = [Math.max(mine.low, right.low), Math.min(mine.high, right.high)];
      return low < high && mine.decision !== right.decision
        ? [{ low, high, taken: mine.decision, best: right.decision }]
        : [];
    }),
  );
}

// Hatches for what is avoidable; patterns are known by name in the whole page, so each picture has its own.
function hatchPattern(id) {
  const pattern = drawn("pattern", {
    id,
    width: 6,
    height: 6,
    patternUnits: "userSpaceOnUse",
    patternTransform: "rotate(45)",
  });
  pattern.append(
    drawn("rect", { width: 6, height: 6, class: "hatch-ground" }),
    drawn("rect", { width: 2.4, height: 6, class: "hatch-line" }),
  );
  const definitions = drawn("defs");
  definitions.append(pattern);
  return definitions;
}

function drawAxis(group, scale, width, bottom) {
  group.append(drawn("line", { class: "axis", x1: scale.x(LINE_VIEW[0]), x2: scale.x(LINE_VIEW[1]), y1: bottom, y2: bottom }));
  const every = width < 480 ? 10 : 5;
  const ticks = Array.from({ length: LINE_VIEW[1] / every + 1 }, (_, k) => k * every);
  const marks = ticks.map((value) =>
    drawn("line", { class: "axis", x1: scale.x(value), x2: scale.x(value), y1: bottom, y2: bottom + 5 }),
  );
  group.append(...marks, ...bottomTicks(ticks, scale.x, bottom + 34));
}

// The line through all charts at which x is read off.
function drawReader(group, scale, x, top, bottom) {
  drawEdge(group, scale.x(x), top, bottom, "edge reader");
}

// A dot on a curve, where it is read off.
const dotAt = (x, y, kind) => drawn("circle", { class: `read class-${kind}`, cx: x, cy: y, r: 4.5 });

// Ground and names of the regions of the rule.
function drawRegions(group, scale, rule, top, bottom) {
  for (const { low, high, decision } of regionsOf(rule)) {
    const [from, to] = [Math.max(low, LINE_VIEW[0]), Math.min(high, LINE_VIEW[1])];
    if (!(from < to)) continue;
    const [left, wide] = [scale.x(from), scale.x(to) - scale.x(from)];
    group.append(
      drawn("rect", { class: `ground class-${decision}`, x: left, y: top, width: wide, height: bottom - top }),
    );
    group.append(drawn("rect", { class: `strip class-${decision}`, x: left, y: bottom + 7, width: wide, height: 5 }));
    if (wide > 62) {
      group.append(
        drawn("text", { class: "region-name", x: left + wide / 2, y: top + 14 }, `decide ${LINE_NAMES[decision]}`),
      );
    }
  }
}

// Draws densities, regions and areas; returns where the handles stand. Without priors (plain) areas are not errors.
export function drawDensities(group, width, height, { classes, rule, best, byHand, zeroOne, plain, x }) {
  const scale = lineScale(width);
  const bottom = height - LINE_MARGIN.bottom;
  const top = 18;
  const curveOf = plain ? densityOf : jointOf;
  const highest = Math.max(...classes.map((part) => curveOf(part, part.mean)), 1e-9);
  const y = (density) => bottom - (density / highest) * (bottom - top - LINE_MARGIN.top);
  const [left, right] = [scale.x(LINE_VIEW[0]), scale.x(LINE_VIEW[1])];
  const name = plain ? "p(x | class)" : "p(x | class) · prior";
  group.replaceChildren(
    hatchPattern("hatch-densities"),
    ...leftAxis({ ticks: niceTicks(highest), y, left, right, name }),
  );
  drawRegions(group, scale, rule, top, bottom);
  for (const { low, high, decision } of plain ? [] : regionsOf(rule)) {
    classes.forEach((part, truth) => {
      if (truth === decision) return;
      const path = bandPath(
        scale,
        low,
        high,
        (value) => y(jointOf(part, value)),
        () => bottom,
      );
      if (path) group.append(drawn("path", { class: `error-area class-${truth}`, d: path }));
    });
  }
  if (byHand && zeroOne && !plain) {
    for (const { low, high, taken, best: right } of disagreements(rule, best)) {
      const path = bandPath(
        scale,
        low,
        high,
        (value) => y(jointOf(classes[right], value)),
        (value) => y(jointOf(classes[taken], value)),
      );
      if (path) group.append(drawn("path", { class: "avoidable", d: path, fill: "url(#hatch-densities)" }));
    }
  }
  classes.forEach((part, k) => {
    const places = valuesBetween(...LINE_VIEW).map((value) => [scale.x(value), y(curveOf(part, value))]);
    group.append(drawn("path", { class: `curve class-${k}`, d: pathThrough(places) }));
    const peak = y(curveOf(part, part.mean));
    group.append(drawn("text", { class: "class-name", x: scale.x(part.mean), y: peak - 13 }, LINE_NAMES[k]));
  });
  if (byHand) edgesInView(best).forEach((edge) => drawEdge(group, scale.x(edge), top, bottom, "edge best"));
  edgesInView(rule).forEach((edge) => drawEdge(group, scale.x(edge), top, bottom, byHand ? "edge by-hand" : "edge"));
  drawReader(group, scale, x, top, bottom);
  group.append(...classes.map((part, k) => dotAt(scale.x(x), y(curveOf(part, x)), k)));
  drawAxis(group, scale, width, bottom);
  return {
    x: scale.x,
    bottom,
    mean: (part) => [scale.x(part.mean), y(curveOf(part, part.mean))],
    spread: (part) => [scale.x(part.mean + part.spread), y(curveOf(part, part.mean + part.spread))],
  };
}

// Draws the posterior of each class at each x, and reads it off at one x; returns where its handle stands.
export function drawPosteriors(group, width, height, { classes, loss, rule, byHand, x, reading }) {
  const scale = lineScale(width);
  const [top, bottom] = [26, height - LINE_MARGIN.bottom];
  const y = (share) => bottom - share * (bottom - top);
  const [left, right] = [scale.x(LINE_VIEW[0]), scale.x(LINE_VIEW[1])];
  group.replaceChildren(...leftAxis({ ticks: [0, 0.5, 1], y, left, right, name: "P(class | x)" }));
  const values = valuesBetween(...LINE_VIEW).map((value) => [value, readingAt(classes, loss, value).posterior]);
  edgesInView(rule).forEach((edge) => drawEdge(group, scale.x(edge), top, bottom, byHand ? "edge by-hand" : "edge"));
  drawReader(group, scale, x, top, bottom);
  classes.forEach((_, k) => {
    const places = values.map(([value, posterior]) => [scale.x(value), y(posterior[k])]);
    group.append(drawn("path", { class: `curve class-${k}`, d: pathThrough(places) }));
  });
  reading.posterior.forEach((share, k) => group.append(dotAt(scale.x(x), y(share), k)));
  drawAxis(group, scale, width, bottom);
  return [scale.x(x), bottom];
}

function drawEdge(group, x, top, bottom, kind) {
  group.append(drawn("line", { class: kind, x1: x, x2: x, y1: top, y2: bottom }));
}

// Draw the expected cost of each decision: the area under the chosen decision is the risk, the part above the lowest
// curve avoidable.
export function drawCosts(group, width, height, { classes, loss, rule, best, byHand, x }) {
  const scale = lineScale(width);
  const bottom = height - LINE_MARGIN.bottom;
  const costs = valuesBetween(...LINE_VIEW).map((value) => ({ value, risks: riskDensities(classes, loss, value) }));
  const least = Math.max(...costs.map(({ risks }) => Math.min(...risks)), 1e-12);
  const highest = Math.min(Math.max(...costs.flatMap(({ risks }) => risks)), 8 * least); // the least cost stays visible
  const y = (cost) => bottom - Math.min(cost / highest, 1.05) * (bottom - 22);
  const risk = (decision) => (value) => y(riskDensities(classes, loss, value)[decision]);
  const [left, right] = [scale.x(LINE_VIEW[0]), scale.x(LINE_VIEW[1])];
  group.replaceChildren(
    hatchPattern("hatch-costs"),
    ...leftAxis({ ticks: niceTicks(highest), y, left, right, name: "expected cost · p(x)" }),
  );
  for (const { low, high, decision } of regionsOf(rule)) {
    const path = bandPath(scale, low, high, risk(decision), () => bottom);
    if (path) group.append(drawn("path", { class: "cost-area", d: path }));
  }
  if (byHand) {
    for (const { low, high, taken, best: right } of disagreements(rule, best)) {
      const path = bandPath(scale, low, high, risk(taken), risk(right));
      if (path) group.append(drawn("path", { class: "avoidable", d: path, fill: "url(#hatch-costs)" }));
    }
  }
  loss.forEach((_, d) => {
    const places = costs.map(({ value, risks }) => [scale.x(value), y(risks[d])]);
    group.append(drawn("path", { class: `curve thin class-${d}`, d: pathThrough(places) }));
  });
  edgesInView(rule).forEach((edge) => drawEdge(group, scale.x(edge), 18, bottom, byHand ? "edge by-hand" : "edge"));
  drawReader(group, scale, x, 18, bottom);
  drawAxis(group, scale, width, bottom);
}
