// Two or three classes on a line with adjustable means, standard deviations, priors and costs.

import { drawn, element } from "../web/dom.js";
import { zeroOneLoss } from "./maths_line.js";
import {
  buttonRow,
  choice,
  colorKey,
  dragHandle,
  exampleButtons,
  limited,
  liveStatus,
  notifyChange,
  numberTiles,
  sceneFrame,
  scrollBox,
  setData,
  sizedPicture,
  stepped,
} from "./controls.js";
import { buildLineControls, lineSentence, shortNumber, showLineNumbers, showReading } from "./scene_line_controls.js";
import {
  FIRST_X,
  LINE_EXAMPLES,
  LINE_NAMES,
  LINE_VIEW,
  lineClass,
  lineResults,
  lineStateFrom,
  MEAN_LIMITS,
  SPREAD_LIMITS,
  withPrior,
} from "./scene_line_state.js";
import { drawCosts, drawDensities, drawPosteriors, lineScale } from "./scene_line_picture.js";

const EDGE_STEP = 0.01;
export function mountLineScene(root) {
  const scene = sceneFrame(
    root,
    "line",
    "Where to put the boundary",
    "The only known feature of a letter is x, its number of black pixels. Each curve is the density of a class times " +
      "its prior. With equal costs, the best decision is the class of the highest curve; the area under the others is " +
      "the unavoidable error (Bayes error). Drag the peaks, the flanks and the boundary.",
  );
  let now = { ...structuredClone(LINE_EXAMPLES.Letters), loss: zeroOneLoss(2), hand: null, x: FIRST_X, plain: false };
  let found = lineResults(now);
  let handles = { classes: [], edges: [] };
  let fields = [];
  const status = liveStatus();
  const tiles = numberTiles();
  const keyHome = element("div", {});
  const tableHome = scrollBox("Decisions by true class");
  const controls = element("div", { class: "cards" });

  const densities = sizedPicture(
    { role: "group", "aria-label": "Densities of the classes, with handles" },
    (width) => limited(width * 0.48, [250, 380]),
    drawUpper,
  );
  const [curves, grips] = [drawn("g", { "aria-hidden": "true" }), drawn("g")];
  densities.svg.append(curves, grips);
  const posteriors = sizedPicture(
    { role: "group", "aria-label": "Posterior of each class at each x, with a handle at x" },
    () => 210,
    (width, height) => reader.place(...drawPosteriors(posteriorCurves, width, height, found)),
  );
  const costs = sizedPicture(
    { role: "img", "aria-label": "Expected cost of each decision at each x" },
    () => 190,
    (width, height) => drawCosts(costs.svg, width, height, found),
  );
  const posteriorCurves = drawn("g", { "aria-hidden": "true" });
  const readingHome = scrollBox("Densities, posteriors and costs at x");
  const costKey = element("div", {});
  const reader = dragHandle({
    label: "x",
    kind: "reader",
    limits: () => LINE_VIEW,
    step: 0.1,
    read: () => now.x,
    write: (x) => change({ x }),
    describe: (x) => `x = ${shortNumber(x)}`,
    pointed: (event) => pointedValue(event, posteriors),
  });
  posteriors.svg.append(posteriorCurves, reader.node);
  for (const picture of [densities, posteriors, costs]) {
    picture.svg.addEventListener("click", (event) => {
      if (!event.target.closest(".handle")) change({ x: limited(stepped(pointedValue(event, picture), 0.1), LINE_VIEW) });
    });
  }
  const curvesShown = choice("Curves", "line-curves", [[false, "with priors"], [true, "without priors: p(x | class)"]], {
    read: () => now.plain,
    write: (plain) => change({ plain }),
  });

  function drawUpper(width, height) {
    const places = drawDensities(curves, width, height, found);
    now.classes.forEach((part, k) => {
      handles.classes[k].mean.place(...places.mean(part));
      handles.classes[k].spread.place(...places.spread(part));
    });
    handles.edges.forEach((handle, k) => {
      const edge = found.rule.edges[k];
      const inside = LINE_VIEW[0] <= edge && edge <= LINE_VIEW[1];
      handle.node.classList.toggle("outside", !inside);
      handle.node.setAttribute("tabindex", inside ? "0" : "-1");
      handle.place(places.x(limited(edge, LINE_VIEW)), places.bottom + 9);
    });
  }

  const pointedValue = (event, picture = densities) =>
    lineScale(picture.svg.getBoundingClientRect().width).value(picture.placeOf(event)[0]);

  function change(next) {
    now = { ...now, ...next };
    update();
    notifyChange(scene);
  }

  const setClass = (k, part) => change({ classes: now.classes.map((old, c) => (c === k ? { ...old, ...part } : old)) });

  const setPrior = (k, prior) => change({ classes: withPrior(now.classes, k, prior) });
  const setCost = (d, c, cost) =>
    change({ loss: now.loss.map((row, i) => row.map((old, j) => (i === d && j === c ? cost : old))) });

  function classHandles(k) {
    const name = LINE_NAMES[k];
    return {
      mean: dragHandle({
        label: `Mean of ${name}`,
        kind: `class-${k}`,
        limits: () => MEAN_LIMITS,
        step: 0.1,
        read: () => now.classes[k].mean,
        write: (mean) => setClass(k, { mean }),
        describe: (mean) => `mean ${shortNumber(mean)}`,
        pointed: (event) => pointedValue(event),
      }),
      spread: dragHandle({
        label: `Standard deviation of ${name}`,
        kind: `hollow class-${k}`,
        limits: () => SPREAD_LIMITS,
        step: 0.1,
        read: () => now.classes[k].spread,
        write: (spread) => setClass(k, { spread }),
        describe: (spread) => `standard deviation ${shortNumber(spread)}`,
        pointed: (event) => Math.abs(pointedValue(event) - now.classes[k].mean),
      }),
    };
  }

  function moveEdge(k, value) {
    const edges = [...found.rule.edges];
    edges[k] = value;
    change({ hand: { edges, decisions: [...found.rule.decisions] } });
  }

  function edgeHandle(k) {
    const limits = () => {
      const { edges } = found.rule;
      return [
        limited(k ? edges[k - 1] : LINE_VIEW[0], LINE_VIEW),
        limited(k + 1 < edges.length ? edges[k + 1] : LINE_VIEW[1], LINE_VIEW),
      ];
    };
    return dragHandle({
      label: found.rule.edges.length > 1 ? `Boundary ${k + 1}` : "Boundary",
      kind: "boundary",
      step: EDGE_STEP,
      limits,
      read: () => found.rule.edges[k],
      write: (value) => moveEdge(k, value),
      pointed: (event) => pointedValue(event),
      describe: (value) => `boundary at ${shortNumber(value)}`,
    });
  }

  // Handles are kept while the number of classes and boundaries stays the same, so that the focus stays.
  function keepHandles() {
    if (handles.classes.length !== now.classes.length) {
      handles = { classes: now.classes.map((_, k) => classHandles(k)), edges: [] };
      grips.replaceChildren(...handles.classes.flatMap(({ mean, spread }) => [mean.node, spread.node]));
      fields = buildLineControls(controls, { read: () => now, setClass, setPrior, setCost });
    }
    while (handles.edges.length > found.rule.edges.length) handles.edges.pop().node.remove();
    while (handles.edges.length < found.rule.edges.length) {
      const handle = edgeHandle(handles.edges.length);
      handles.edges.push(handle);
      grips.append(handle.node);
    }
  }

  function showNumbers() {
    const { best, rule, areas, error, risk, least, avoidable } = found;
    showLineNumbers({ tiles, keyHome, tableHome }, found);
    showReading(readingHome, found);
    costKey.replaceChildren(colorKey(now.classes.map((_, k) => [`line class-${k}`, `decide ${LINE_NAMES[k]}`])));
    status.announce(lineSentence(found));
    const edges = { boundary: rule.edges[0] ?? "", boundaries: rule.edges, "best-boundaries": best.edges };
    setData(scene, { ...edges, decisions: rule.decisions, areas, error, risk, least, avoidable, ...found.reading });
  }

  function update() {
    found = lineResults(now);
    keepHandles();
    fields.forEach((field) => field.refresh());
    showNumbers();
    backButton.disabled = !now.hand;
    thirdButton.textContent = now.classes.length > 2 ? "Remove class c" : "Add class c";
    curvesShown.refresh();
    [densities, posteriors, costs].forEach((picture) => picture.redraw());
  }

  function toggleThird() {
    if (now.classes.length > 2) {
      const rest = withPrior(now.classes, 2, 0).slice(0, 2);
      return change({ classes: rest, loss: now.loss.slice(0, 2).map((row) => row.slice(0, 2)), hand: null });
    }
    const classes = withPrior([...now.classes, lineClass(34, 2.5, 0)], 2, 0.2);
    const loss = zeroOneLoss(3).map((row, d) => row.map((cost, c) => now.loss[d]?.[c] ?? cost));
    return change({ classes, loss, hand: null });
  }

  const actions = buttonRow("Change the classes or the boundary", [
    ["Add class c", toggleThird],
    ["Reset the boundary", () => change({ hand: null })],
  ]);
  const [thirdButton, backButton] = actions.children;
  const examples = exampleButtons(Object.keys(LINE_EXAMPLES), (name) => {
    const { classes, loss } = structuredClone(LINE_EXAMPLES[name]);
    change({ classes, loss: loss || zeroOneLoss(classes.length), hand: null });
  });
  scene.append(
    examples,
    curvesShown.node,
    densities.node,
    keyHome,
    tiles.node,
    actions,
    element("h3", { id: "line-posterior" }, "Posterior at each x"),
    element(
      "p",
      { class: "quiet" },
      "Bayes’ theorem at every x: density times prior, divided by the sum over the classes. " +
        "Drag x or click into a chart to read off all numbers there.",
    ),
    posteriors.node,
    readingHome,
    controls,
    element("h3", {}, "Expected cost at each x"),
    element(
      "p",
      { class: "quiet" },
      "One curve per decision: its cost for each true class, times p(x | class) · prior, summed. " +
        "The best rule follows the lowest curve. The shaded area is the risk of the rule; its hatched part is avoidable.",
    ),
    costs.node,
    costKey,
    tableHome,
    status.node,
  );
  update();

  return {
    state: () => ({
      classes: now.classes.map(({ mean, spread, prior }) => [mean, spread, prior]),
      loss: now.loss,
      hand: now.hand,
      x: now.x,
      plain: now.plain,
    }),
    restore(state) {
      const next = lineStateFrom(state);
      if (next) {
        now = next;
        update();
      }
    },
  };
}
