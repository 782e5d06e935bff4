// Charts of classes on a line: weighted densities, regions, error areas, and expected costs.

import { drawn } from "../web/dom.js";
import { normalDensity } from "./maths_normal.js";
import { regionsOf, riskDensities } from "./maths_line.js";
import { LINE_NAMES, LINE_VIEW } from "./scene_line_state.js";

const LINE_PLACES = 240;
const LINE_MARGIN = { left: 14, right: 14, top: 48, bottom: 40 };

// From values to places on the picture, and back.
export function lineScale(width) {
  const [low, high] = LINE_VIEW;
  const room = width - LINE_MARGIN.left - LINE_MARGIN.right;
  return {
    x: (value) => LINE_MARGIN.left + ((value - low) / (high - low)) * room,
    value: (place) => low + ((place - LINE_MARGIN.left) / room) * (high - low),
  };
}

const jointOf = ({ mean, spread, prior }, x) => prior * normalDensity(x, mean, spread);

// Values between two ends, close enough for a smooth curve.
function valuesBetween(low, high) {
  const [from, to] = [Math.max(low, LINE_VIEW[0]), Math.min(high, LINE_VIEW[1])];
  if (!(from < to)) return [];
  const count = Math.max(2, Math.ceil((LINE_PLACES * (to - from)) / (LINE_VIEW[1] - LINE_VIEW[0])));
  return Array.from({ length: count + 1 }, (_, k) => from + ((to - from) * k) / count);
}

const pathThrough = (places) => places.map(([x, y], k) => `${k ? "L" : "M"}${x.toFixed(2)} ${y.toFixed(2)}`).join("");

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
  group.append(drawn("line", { class: "axis", x1: 0, x2: width, y1: bottom, y2: bottom }));
  const every = width < 480 ? 10 : 5;
  for (let value = LINE_VIEW[0]; value <= LINE_VIEW[1]; value += every) {
    group.append(drawn("line", { class: "axis", x1: scale.x(value), x2: scale.x(value), y1: bottom, y2: bottom + 5 }));
    group.append(drawn("text", { class: "tick", x: scale.x(value), y: bottom + 34 }, String(value)));
  }
}

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

// Draws densities, regions and areas; returns where the handles stand.
export function drawDensities(group, width, height, { classes, rule, best, byHand, zeroOne }) {
  const scale = lineScale(width);
  const bottom = height - LINE_MARGIN.bottom;
  const top = 4;
  const highest = Math.max(...classes.map((part) => jointOf(part, part.mean)), 1e-9);
  const y = (density) => bottom - (density / highest) * (bottom - top - LINE_MARGIN.top);
  group.replaceChildren(hatchPattern("hatch-densities"));
  drawRegions(group, scale, rule, top, bottom);
  for (const { low, high, decision } of regionsOf(rule)) {
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
  if (byHand && zeroOne) {
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
    const places = valuesBetween(...LINE_VIEW).map((value) => [scale.x(value), y(jointOf(part, value))]);
    group.append(drawn("path", { class: `curve class-${k}`, d: pathThrough(places) }));
    const peak = y(jointOf(part, part.mean));
    group.append(drawn("text", { class: "class-name", x: scale.x(part.mean), y: peak - 13 }, LINE_NAMES[k]));
  });
  if (byHand) best.edges.forEach((edge) => drawEdge(group, scale.x(edge), top, bottom, "edge best"));
  rule.edges.forEach((edge) => drawEdge(group, scale.x(edge), top, bottom, byHand ? "edge by-hand" : "edge"));
  drawAxis(group, scale, width, bottom);
  return {
    x: scale.x,
    bottom,
    mean: (part) => [scale.x(part.mean), y(jointOf(part, part.mean))],
    spread: (part) => [scale.x(part.mean + part.spread), y(jointOf(part, part.mean + part.spread))],
  };
}

function drawEdge(group, x, top, bottom, kind) {
  group.append(drawn("line", { class: kind, x1: x, x2: x, y1: top, y2: bottom }));
}

// Draw the expected cost of each decision: the area under the chosen decision is the risk, the part above the lowest
// curve avoidable.
export function drawCosts(group, width, height, { classes, loss, rule, best, byHand }) {
  const scale = lineScale(width);
  const bottom = height - 6;
  const costs = valuesBetween(...LINE_VIEW).map((value) => ({ value, risks: riskDensities(classes, loss, value) }));
  const least = Math.max(...costs.map(({ risks }) => Math.min(...risks)), 1e-12);
  const highest = Math.min(Math.max(...costs.flatMap(({ risks }) => risks)), 8 * least); // the least cost stays visible
  const y = (cost) => bottom - Math.min(cost / highest, 1.05) * (bottom - 22);
  const risk = (decision) => (value) => y(riskDensities(classes, loss, value)[decision]);
  group.replaceChildren(hatchPattern("hatch-costs"));
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
  rule.edges.forEach((edge) => drawEdge(group, scale.x(edge), 18, bottom, byHand ? "edge by-hand" : "edge"));
  group.append(drawn("line", { class: "axis", x1: 0, x2: width, y1: bottom, y2: bottom }));
}
