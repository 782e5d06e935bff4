// Naive Bayes with shared variances is a linear model, and its posterior a logistic function; beside logistic regression.

import { drawn, element } from "../web/dom.js";
import { significant } from "./maths_belief.js";
import { PLANE_EXTENT, planeForms } from "./maths_plane.js";
import {
  drawPoints,
  lineOf,
  logistic,
  logisticLine,
  naiveGaussians,
  naiveSteps,
  scoreAt,
  trueLine,
} from "./maths_linear.js";
import {
  actionButton,
  bottomTicks,
  classDot,
  colorKey,
  exampleButtons,
  followPointer,
  leftAxis,
  limited,
  liveStatus,
  namedTable,
  notifyChange,
  numberOr,
  oncePerFrame,
  pathThrough,
  rangeField,
  sceneFrame,
  scrollBox,
  setData,
  sizedPicture,
  stepped,
} from "./controls.js";
import { classColorsOf, paintRegions } from "./scene_plane_picture.js";

const LINEAR_NAMES = ["a", "b"];
const COUNT_LIMITS = [10, 2000];
const CORRELATION_LIMITS = [-0.9, 0.9];
const VIEW = [0, PLANE_EXTENT];
const SCORES = [-6, 6];
const MAX_SEED = 99999;
const LINEAR_EXAMPLES = {
  "Independent columns": { count: 200, correlation: 0 },
  "Few rows": { count: 15, correlation: 0 },
  "Many rows": { count: 2000, correlation: 0 },
  "Correlated columns": { count: 2000, correlation: 0.8 },
};
const FIRST = { ...LINEAR_EXAMPLES["Independent columns"], seed: 1, x: 6, y: 4.5 };
const LINES = { naive: "naive Bayes", regression: "logistic regression", truth: "true boundary" };
const fourDigits = (value) => significant(value, 4);
const minus = (value) => fourDigits(value).replace("-", "−");
const added = (value) => `${value < 0 ? "−" : "+"} ${fourDigits(Math.abs(value))}`;

export function mountLinearScene(root) {
  const scene = sceneFrame(
    root,
    "linear",
    "Naive Bayes = linear = logistic",
    "If both classes have the same variances, the squares cancel: the log-odds of naive Bayes are w · x + b, a straight " +
      "boundary, and its posterior is the logistic function of them. Logistic regression fits the same form directly. " +
      "With many rows both agree, if the columns are independent within each class.",
  );
  let now = { ...FIRST };
  let found = results();
  const status = liveStatus();
  const [sumHome, linesHome] = ["The calculation at x", "The lines"].map(scrollBox);
  const sentence = element("p", {});
  const canvas = element("canvas", { class: "regions", "aria-hidden": "true" });
  const plane = sizedPicture({ role: "group", "aria-label": "Points, lines, and the point x" }, (width) => width, drawPlane);
  plane.node.prepend(canvas);
  const curve = sizedPicture({ role: "img", "aria-label": "The posterior of b as the logistic function of w · x + b" }, () => 300, drawCurve);
  const [lines, marker] = [drawn("g", { "aria-hidden": "true" }), drawn("g", { class: "handle reader" })];
  marker.append(drawn("circle", { class: "reach", r: 20 }), drawn("circle", { class: "knob", r: 8 }));
  plane.svg.append(lines, marker);
  const soon = oncePerFrame(update);
  const putAt = (event) => {
    const wide = plane.svg.getBoundingClientRect().width;
    const [x, y] = plane.placeOf(event).map((place) => (place / wide) * PLANE_EXTENT);
    change({ x: limited(stepped(x, 0.05), VIEW), y: limited(stepped(PLANE_EXTENT - y, 0.05), VIEW) });
  };
  followPointer(marker, putAt);
  plane.svg.addEventListener("click", (event) => {
    if (!event.target.closest(".handle")) putAt(event);
  });

  // Everything that depends on the points.
  function results() {
    const points = drawPoints(now.count, now.correlation, now.seed);
    const gaussians = naiveGaussians(points);
    const rules = { naive: lineOf(gaussians), regression: logisticLine(points), truth: trueLine(now.correlation) };
    const mistakes = Object.values(rules).map(
      (line) => points.filter(({ x, y, kind }) => scoreAt(line, x, y) > 0 !== (kind === 1)).length,
    );
    return { points, gaussians, rules, mistakes };
  }

  function change(next) {
    const drawAgain = ["count", "correlation", "seed"].some((name) => name in next && next[name] !== now[name]);
    now = { ...now, ...next };
    if (drawAgain) found = results();
    soon();
    notifyChange(scene);
  }

  // Where a line meets the sides of the square.
  function ends({ w, b }) {
    const [low, high] = [-1, PLANE_EXTENT + 1];
    return Math.abs(w[1]) > Math.abs(w[0])
      ? [low, high].map((x) => [x, -(w[0] * x + b) / w[1]])
      : [low, high].map((y) => [-(w[1] * y + b) / w[0], y]);
  }

  function drawPlane(width) {
    const place = ([x, y]) => [(x / PLANE_EXTENT) * width, width - (y / PLANE_EXTENT) * width];
    const dots = (kind) =>
      found.points
        .filter((point) => point.kind === kind)
        .map(({ x, y }) => place([x, y]))
        .map(([x, y]) => `M${x.toFixed(1)} ${y.toFixed(1)}h0`)
        .join("");
    paintRegions(canvas, [planeForms(found.gaussians)], classColorsOf(scene), false);
    const size = now.count > 400 ? "fine" : "";
    lines.replaceChildren(
      ...[0, 1].map((kind) => drawn("path", { class: `cloud ${size} class-${kind}`, d: dots(kind) })),
      ...Object.keys(LINES).map((name) =>
        drawn("path", { class: `line-of ${name}`, d: pathThrough(ends(found.rules[name]).map(place)) }),
      ),
    );
    const [x, y] = place([now.x, now.y]);
    marker.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)})`);
  }

  function drawCurve(width, height) {
    const [left, right, top, bottom] = [34, width - 8, 22, height - 40];
    const x = (score) => left + ((score - SCORES[0]) / (SCORES[1] - SCORES[0])) * (right - left);
    const y = (share) => bottom - share * (bottom - top);
    const values = Array.from({ length: 121 }, (_, k) => SCORES[0] + k / 10);
    const score = limited(scoreAt(found.rules.naive, now.x, now.y), SCORES);
    const rug = (kind) =>
      found.points
        .filter((point) => point.kind === kind)
        .map((point) => scoreAt(found.rules.naive, point.x, point.y))
        .filter((value) => SCORES[0] <= value && value <= SCORES[1])
        .map((value) => `M${x(value).toFixed(1)} ${y(kind).toFixed(1)}v${kind ? 9 : -9}`)
        .join("");
    curve.svg.replaceChildren(
      ...leftAxis({ ticks: [0, 0.5, 1], y, left, right, name: "P(b | x)" }),
      ...bottomTicks([-6, -4, -2, 0, 2, 4, 6], x, bottom + 18, (tick) => String(tick).replace("-", "−")),
      drawn("text", { class: "tick", x: (left + right) / 2, y: height - 4 }, "w · x + b"),
      ...[0, 1].map((kind) => drawn("path", { class: `rug class-${kind}`, d: rug(kind) })),
      drawn("line", { class: "edge", x1: x(0), x2: x(0), y1: top, y2: bottom }),
      drawn("path", { class: "line-of naive", d: pathThrough(values.map((value) => [x(value), y(logistic(value))])) }),
      drawn("line", { class: "edge reader", x1: x(score), x2: x(score), y1: top, y2: bottom }),
      drawn("circle", { class: "read", cx: x(score), cy: y(logistic(score)), r: 5 }),
    );
  }

  function showSum(steps, score) {
    const names = ["prior", `x₁ = ${fourDigits(now.x)}`, `x₂ = ${fourDigits(now.y)}`];
    sumHome.replaceChildren(
      namedTable({
        caption: "Naive Bayes at x: products, and their logarithms",
        head: ["", ...LINEAR_NAMES.map((name, k) => element("span", {}, classDot(k), name)), "log ratio"],
        rows: steps.steps.map(([a, b], k) => [names[k], fourDigits(a), fourDigits(b), minus(Math.log(b / a))]),
        foot: [
          ["product, sum", ...steps.joint.map(fourDigits), element("td", {}, element("strong", {}, minus(score)))],
          ["posterior", (1 - steps.posterior).toFixed(6), element("td", {}, element("strong", {}, steps.posterior.toFixed(6))), ""],
        ],
      }),
    );
  }

  function showLines() {
    const rows = Object.entries(LINES).map(([name, title], k) => {
      const { w, b } = found.rules[name];
      const chance = logistic(scoreAt(found.rules[name], now.x, now.y));
      return [title, ...[...w, b].map(minus), chance.toFixed(4), `${((50 * found.mistakes[k]) / now.count).toFixed(2)}%`];
    });
    linesHome.replaceChildren(
      namedTable({
        caption: "The same form, three estimates",
        head: ["", "w₁", "w₂", "b", element("span", { class: "formula" }, "P(b | x)"), "errors"],
        rows,
      }),
    );
  }

  function update() {
    const { naive } = found.rules;
    const score = scoreAt(naive, now.x, now.y);
    const steps = naiveSteps(found.gaussians, now.x, now.y);
    fields.forEach((field) => field.refresh());
    showSum(steps, score);
    showLines();
    sentence.replaceChildren(
      `w · x + b = ${minus(naive.w[0])} · ${fourDigits(now.x)} ${added(naive.w[1])} · ${fourDigits(now.y)} ` +
        `${added(naive.b)} = ${minus(score)}, and 1 / (1 + exp(${minus(-score)})) = `,
      element("strong", {}, logistic(score).toFixed(6)),
      ": the posterior of naive Bayes.",
    );
    [plane, curve].forEach((picture) => picture.redraw());
    setData(scene, { ...found.rules, score, posterior: steps.posterior, logistic: logistic(score) });
    status.announce(`P(b | x) is ${steps.posterior.toFixed(4)}.`);
  }

  const range = (name, label, limits, step) =>
    rangeField({ label, limits, step, read: () => now[name], write: (value) => change({ [name]: stepped(value, step) }) });
  const fields = [
    range("x", "x₁", VIEW, 0.05),
    range("y", "x₂", VIEW, 0.05),
    range("count", "rows per class", COUNT_LIMITS, 5),
    range("correlation", "correlation", CORRELATION_LIMITS, 0.1),
  ];
  const examples = exampleButtons(Object.keys(LINEAR_EXAMPLES), (name) => change(LINEAR_EXAMPLES[name]));
  scene.append(
    examples,
    element(
      "div",
      { class: "two" },
      element("div", { class: "card panel" }, element("h3", {}, "Linear"), plane.node,
        colorKey(Object.entries(LINES).map(([name, title]) => [`line-key ${name}`, title]))),
      element("div", { class: "stack" },
        element("div", { class: "card" }, element("h3", {}, "Logistic"), curve.node),
        element("div", { class: "card" }, ...fields.map(({ node }) => node),
          element("div", { class: "buttons" },
            actionButton("Draw new points", () => change({ seed: (now.seed + 1) % MAX_SEED }))))),
    ),
    element("div", { class: "two" }, sumHome, element("div", { class: "stack" }, linesHome, sentence)),
    element(
      "p",
      { class: "quiet" },
      "Bernoulli, multinomial and categorical columns are linear, too: their weights are logarithms of probabilities. " +
        "Gaussians with a variance per class are quadratic.",
    ),
    status.node,
  );
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", soon);
  update();

  return {
    state: () => ({ ...now }),
    restore(state) {
      const limits = { count: COUNT_LIMITS, correlation: CORRELATION_LIMITS, seed: [0, MAX_SEED], x: VIEW, y: VIEW };
      for (const [name, range] of Object.entries(limits)) now[name] = numberOr(state?.[name], range, FIRST[name]);
      [now.count, now.seed] = [Math.round(now.count), Math.round(now.seed)];
      found = results();
      update();
    },
  };
}
