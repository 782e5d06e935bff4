// Two or three classes on a line: means, spreads, priors and losses to move, and what follows from them.

import { drawn, element } from "../web/dom.js";
import { zeroOneLoss } from "./maths_line.js";
import {
  buttonRow,
  dragHandle,
  figureTiles,
  limited,
  sceneFrame,
  scrollBox,
  sizedPicture,
  spokenStatus,
  tellChange,
  tellNumbers,
} from "./controls.js";
import { buildLineControls, lineSentence, shortNumber, showLineFigures } from "./scene_line_controls.js";
import {
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
import { drawCosts, drawDensities, lineScale } from "./scene_line_picture.js";

const EDGE_STEP = 0.01;
export function mountLineScene(root) {
  const scene = sceneFrame(
    root,
    "line",
    "Two classes and a boundary",
    "A letter is either a or b, and all that is known of it is x, the number of its black pixels. Each curve is how " +
      "often a class gives an x, times its prior. Decide for the higher curve: where the curves cross, the decision " +
      "changes, and what lies under the lower one is the error nobody can avoid. Drag the peaks, the flanks and the boundary.",
  );
  let now = { ...structuredClone(LINE_EXAMPLES.Letters), loss: zeroOneLoss(2), hand: null };
  let found = lineResults(now);
  let handles = { classes: [], edges: [] };
  let fields = [];
  const spoken = spokenStatus();
  const tiles = figureTiles();
  const keyHome = element("div", {});
  const tableHome = scrollBox("Decisions and truths");
  const controls = element("div", { class: "cards" });

  const densities = sizedPicture(
    { role: "group", "aria-label": "Densities of the classes, with handles" },
    (width) => limited(width * 0.48, [250, 380]),
    drawUpper,
  );
  const [curves, grips] = [drawn("g", { "aria-hidden": "true" }), drawn("g")];
  densities.svg.append(curves, grips);
  const costs = sizedPicture(
    { role: "img", "aria-label": "What each decision costs at each x" },
    () => 120,
    (width, height) => drawCosts(costs.svg, width, height, found),
  );

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

  const pointedValue = (event) =>
    lineScale(densities.svg.getBoundingClientRect().width).value(densities.placeOf(event)[0]);

  function change(next) {
    now = { ...now, ...next };
    update();
    tellChange(scene);
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
        say: (mean) => `mean ${shortNumber(mean)}`,
        pointed: pointedValue,
      }),
      spread: dragHandle({
        label: `Spread of ${name}`,
        kind: `hollow class-${k}`,
        limits: () => SPREAD_LIMITS,
        step: 0.1,
        read: () => now.classes[k].spread,
        write: (spread) => setClass(k, { spread }),
        say: (spread) => `spread ${shortNumber(spread)}`,
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
      pointed: pointedValue,
      say: (value) => `boundary at ${shortNumber(value)}`,
    });
  }

  // Handles live as long as there are as many classes and boundaries, so that focus stays.
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

  function showFigures() {
    const { best, rule, areas, error, risk, least, avoidable } = found;
    showLineFigures({ tiles, keyHome, tableHome }, found);
    spoken.say(lineSentence(found));
    const edges = { boundary: rule.edges[0] ?? "", boundaries: rule.edges, "best-boundaries": best.edges };
    tellNumbers(scene, { ...edges, decisions: rule.decisions, areas, error, risk, least, avoidable });
  }

  function update() {
    found = lineResults(now);
    keepHandles();
    fields.forEach((field) => field.refresh());
    showFigures();
    backButton.disabled = !now.hand;
    thirdButton.textContent = now.classes.length > 2 ? "Take away class c" : "Add a class c";
    densities.redraw();
    costs.redraw();
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
    ["Add a class c", toggleThird],
    ["Boundary back to the best", () => change({ hand: null })],
  ]);
  const [thirdButton, backButton] = actions.children;
  const examples = buttonRow(
    "Examples",
    Object.entries(LINE_EXAMPLES).map(([name, { classes, loss }]) => [
      name,
      () =>
        change({
          classes: structuredClone(classes),
          loss: structuredClone(loss || zeroOneLoss(classes.length)),
          hand: null,
        }),
    ]),
    "examples",
  );
  scene.append(
    examples,
    densities.node,
    keyHome,
    tiles.node,
    actions,
    controls,
    element("h3", {}, "What deciding costs at each x"),
    element(
      "p",
      { class: "quiet" },
      "One curve for each decision: its cost under each truth, times how likely that truth is at x. " +
        "The best rule follows the lowest curve; the shaded area is the risk of the rule, the hatched part of it avoidable.",
    ),
    costs.node,
    tableHome,
    spoken.node,
  );
  update();

  return {
    state: () => ({
      classes: now.classes.map(({ mean, spread, prior }) => [mean, spread, prior]),
      loss: now.loss,
      hand: now.hand,
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
