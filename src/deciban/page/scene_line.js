// Two or three classes on a line: means, spreads, priors and losses to move, and what follows from them.

import { drawn, element } from "../web/dom.js";
import { areasOf, bestRule, isZeroOne, riskOf, zeroOneLoss } from "./maths_line.js";
import {
  buttonRow, colourKey, dragHandle, figureTiles, limited, numberField, numberOr, sceneFrame, scrollBox, sizedPicture, spokenStatus,
  tellChange, tellNumbers,
} from "./controls.js";
import { drawCosts, drawDensities, LINE_NAMES, LINE_VIEW, lineScale } from "./scene_line_picture.js";

const MEAN_LIMITS = LINE_VIEW;
const SPREAD_LIMITS = [0.5, 12];
const PRIOR_LIMITS = [0, 1];
const COST_LIMITS = [0, 1e6];
const EDGE_STEP = 0.01;
const MOST_EDGES = 6;
const lineClass = (mean, spread, prior) => ({ mean, spread, prior });
const sixDecimals = (value) => value.toFixed(6);
const shortNumber = (value) => String(Number(value.toFixed(4)));

const LINE_EXAMPLES = {
  Letters: { classes: [lineClass(15, 4, 0.75), lineClass(25, 4, 0.25)] },
  "Equal priors": { classes: [lineClass(15, 4, 0.5), lineClass(25, 4, 0.5)] },
  "A costly mistake": { classes: [lineClass(15, 4, 0.75), lineClass(25, 4, 0.25)], loss: [[0, 10], [1, 0]] },
  "Only the spread differs": { classes: [lineClass(20, 2, 0.5), lineClass(20, 6, 0.5)] },
  "Three classes": { classes: [lineClass(10, 3, 0.3), lineClass(19, 5, 0.4), lineClass(29, 3, 0.3)] },
};

// The priors after one of them was set: the others keep their ratios.
function withPrior(classes, k, prior) {
  const others = 1 - classes[k].prior;
  return classes.map((part, c) => {
    if (c === k) return { ...part, prior };
    return { ...part, prior: others > 0 ? (part.prior * (1 - prior)) / others : (1 - prior) / (classes.length - 1) };
  });
}

// Everything that follows from classes, a loss and perhaps a rule set by hand.
function lineResults({ classes, loss, hand }) {
  const best = bestRule(classes, loss);
  const rule = hand || best;
  const areas = areasOf(classes, rule);
  const least = riskOf(areasOf(classes, best), loss);
  const risk = riskOf(areas, loss);
  return {
    classes, loss, best, rule, areas, least, risk, byHand: Boolean(hand), zeroOne: isZeroOne(loss),
    avoidable: hand ? Math.max(risk - least, 0) : 0, error: riskOf(areas, zeroOneLoss(classes.length)),
  };
}

export function mountLineScene(root) {
  const scene = sceneFrame("line", "Two classes and a boundary",
    "A letter is either a or b, and all that is known of it is x, the number of its black pixels. Each curve is how often a class gives an x, "
    + "times its prior. Decide for the higher curve: where the curves cross, the decision changes, and what lies under the lower one is "
    + "the error nobody can avoid. Drag the peaks, the flanks and the boundary.");
  root.append(scene);
  let now = { ...structuredClone(LINE_EXAMPLES.Letters), loss: zeroOneLoss(2), hand: null };
  let found = lineResults(now);
  let handles = { classes: [], edges: [] };
  let fields = [];
  const spoken = spokenStatus();
  const tiles = figureTiles();
  const keyHome = element("div", {});
  const tableHome = scrollBox("Decisions and truths");
  const controls = element("div", { class: "cards" });

  const densities = sizedPicture({ role: "group", "aria-label": "Densities of the classes, with handles" },
    (width) => limited(width * 0.48, [250, 380]), drawUpper);
  const [curves, grips] = [drawn("g", { "aria-hidden": "true" }), drawn("g")];
  densities.svg.append(curves, grips);
  const costs = sizedPicture({ role: "img", "aria-label": "What each decision costs at each x" }, () => 120,
    (width, height) => drawCosts(costs.svg, width, height, found));

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

  const pointedValue = (event) => lineScale(densities.svg.getBoundingClientRect().width).value(densities.placeOf(event)[0]);

  function change(next) {
    now = { ...now, ...next };
    update();
    tellChange(scene);
  }

  const setClass = (k, part) => change({ classes: now.classes.map((old, c) => (c === k ? { ...old, ...part } : old)) });

  function classHandles(k) {
    const name = LINE_NAMES[k];
    return {
      mean: dragHandle({ label: `Mean of ${name}`, kind: `class-${k}`, limits: () => MEAN_LIMITS, step: 0.1,
        read: () => now.classes[k].mean, write: (mean) => setClass(k, { mean }), say: (mean) => `mean ${shortNumber(mean)}`,
        pointed: pointedValue }),
      spread: dragHandle({ label: `Spread of ${name}`, kind: `hollow class-${k}`, limits: () => SPREAD_LIMITS, step: 0.1,
        read: () => now.classes[k].spread, write: (spread) => setClass(k, { spread }),
        say: (spread) => `spread ${shortNumber(spread)}`, pointed: (event) => Math.abs(pointedValue(event) - now.classes[k].mean) }),
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
      return [limited(k ? edges[k - 1] : LINE_VIEW[0], LINE_VIEW), limited(k + 1 < edges.length ? edges[k + 1] : LINE_VIEW[1], LINE_VIEW)];
    };
    return dragHandle({ label: found.rule.edges.length > 1 ? `Boundary ${k + 1}` : "Boundary", kind: "boundary", step: EDGE_STEP,
      limits, read: () => found.rule.edges[k], write: (value) => moveEdge(k, value), pointed: pointedValue,
      say: (value) => `boundary at ${shortNumber(value)}` });
  }

  // Handles live as long as there are as many classes and boundaries, so that focus stays.
  function keepHandles() {
    if (handles.classes.length !== now.classes.length) {
      handles = { classes: now.classes.map((_, k) => classHandles(k)), edges: [] };
      grips.replaceChildren(...handles.classes.flatMap(({ mean, spread }) => [mean.node, spread.node]));
      buildControls();
    }
    while (handles.edges.length > found.rule.edges.length) handles.edges.pop().node.remove();
    while (handles.edges.length < found.rule.edges.length) {
      const handle = edgeHandle(handles.edges.length);
      handles.edges.push(handle);
      grips.append(handle.node);
    }
  }

  function buildControls() {
    fields = [];
    const keep = (field) => {
      fields.push(field);
      return field.node;
    };
    const cards = now.classes.map((_, k) => element("fieldset", { class: "card" },
      element("legend", {}, element("span", { class: `dot class-${k}`, "aria-hidden": "true" }), `Class ${LINE_NAMES[k]}`),
      element("div", { class: "fields" },
        keep(numberField({ label: "mean", limits: MEAN_LIMITS, step: "any", read: () => now.classes[k].mean, write: (mean) => setClass(k, { mean }) })),
        keep(numberField({ label: "spread", limits: SPREAD_LIMITS, step: "any", read: () => now.classes[k].spread, write: (spread) => setClass(k, { spread }) })),
        keep(numberField({ label: "prior", limits: PRIOR_LIMITS, step: "any", show: shortNumber, read: () => now.classes[k].prior,
          write: (prior) => change({ classes: withPrior(now.classes, k, prior) }) })))));
    controls.replaceChildren(...cards, lossCard(keep));
  }

  function lossCard(keep) {
    const head = element("tr", {}, element("td", {}), ...now.classes.map((_, c) => element("th", { scope: "col" }, `it is ${LINE_NAMES[c]}`)));
    const rows = now.loss.map((row, d) => element("tr", {}, element("th", { scope: "row" }, `decide ${LINE_NAMES[d]}`),
      ...row.map((_, c) => element("td", {}, keep(numberField({
        label: `Cost of deciding ${LINE_NAMES[d]} when it is ${LINE_NAMES[c]}`, hidden: true, limits: COST_LIMITS, step: "any",
        read: () => now.loss[d][c], write: (cost) => change({ loss: now.loss.map((old, i) => old.map((was, j) => (i === d && j === c ? cost : was))) }),
      }))))));
    return element("fieldset", { class: "card" }, element("legend", {}, "What a decision costs"),
      element("div", { class: "scroll" }, element("table", { class: "losses" }, element("thead", {}, head), element("tbody", {}, ...rows))));
  }

  function showFigures() {
    const { rule, best, risk, least, avoidable, byHand, zeroOne } = found;
    const what = zeroOne ? "error" : "risk";
    const at = (edges) => (edges.length ? edges.map((edge) => edge.toFixed(4)).join(", ") : "none");
    tiles.set([
      [best.edges.length > 1 ? "Best boundaries" : "Best boundary", at(best.edges)], [`Bayes ${what}`, sixDecimals(least)],
      ...(byHand ? [["Your boundary", at(rule.edges)], [`Its ${what}`, sixDecimals(risk)], ["of which avoidable", sixDecimals(avoidable), "stressed"]] : []),
    ]);
    const wrong = LINE_NAMES.flatMap((truth, c) => found.areas.flatMap((row, d) =>
      (c === d || row[c] === undefined ? [] : [[`area class-${c}`, `${truth} taken for ${LINE_NAMES[d]}: ${sixDecimals(row[c])}`]])));
    keyHome.replaceChildren(colourKey([...wrong, ...(byHand ? [["hatched", `avoidable: ${sixDecimals(avoidable)}`]] : [])]));
    const head = element("tr", {}, element("td", {}), ...now.classes.map((_, c) => element("th", { scope: "col" }, `it is ${LINE_NAMES[c]}`)));
    const rows = found.areas.map((row, d) => element("tr", {}, element("th", { scope: "row" }, `decide ${LINE_NAMES[d]}`),
      ...row.map((area, c) => element("td", { class: c === d ? "right-cell" : "wrong-cell" }, sixDecimals(area)))));
    tableHome.replaceChildren(element("table", {}, element("caption", {}, "How often each decision meets each truth"),
      element("thead", {}, head), element("tbody", {}, ...rows)));
    spoken.say(`${best.edges.length ? `Best boundary at ${at(best.edges)}` : "No boundary"}. Bayes ${what} ${sixDecimals(least)}.`
      + `${byHand ? ` Your boundary at ${at(rule.edges)}: ${what} ${sixDecimals(risk)}, of which ${sixDecimals(avoidable)} is avoidable.` : ""}`);
    tellNumbers(scene, { boundary: rule.edges[0] ?? "", boundaries: rule.edges, "best-boundaries": best.edges, areas: found.areas,
      decisions: rule.decisions, error: found.error, risk, least, avoidable });
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
    ["Add a class c", toggleThird], ["Boundary back to the best", () => change({ hand: null })],
  ]);
  const [thirdButton, backButton] = actions.children;
  const examples = buttonRow("Examples", Object.entries(LINE_EXAMPLES).map(([name, { classes, loss }]) =>
    [name, () => change({ classes: structuredClone(classes), loss: structuredClone(loss || zeroOneLoss(classes.length)), hand: null })]));
  examples.classList.add("examples");
  scene.append(examples, densities.node, keyHome, tiles.node, actions, controls,
    element("h3", {}, "What deciding costs at each x"),
    element("p", { class: "quiet" }, "One curve for each decision: its cost under each truth, times how likely that truth is at x. "
      + "The best rule follows the lowest curve; the shaded area is the risk of the rule, the hatched part of it avoidable."),
    costs.node, tableHome, spoken.node);
  update();

  return {
    state: () => ({ classes: now.classes.map(({ mean, spread, prior }) => [mean, spread, prior]), loss: now.loss, hand: now.hand }),
    restore(state) {
      const next = lineStateFrom(state);
      if (next) {
        now = next;
        update();
      }
    },
  };
}

// What a link says of the scene, or null where it makes no sense.
function lineStateFrom(state) {
  const given = Array.isArray(state?.classes) ? state.classes.slice(0, 3) : [];
  if (given.length < 2 || !given.every(Array.isArray)) return null;
  const classes = given.map(([mean, spread, prior]) =>
    lineClass(numberOr(mean, MEAN_LIMITS, 20), numberOr(spread, SPREAD_LIMITS, 4), numberOr(prior, PRIOR_LIMITS, 0)));
  const whole = classes.reduce((sum, { prior }) => sum + prior, 0);
  if (Math.abs(whole - 1) > 1e-9) classes.forEach((part) => { part.prior = whole > 0 ? part.prior / whole : 1 / classes.length; });
  const loss = zeroOneLoss(classes.length).map((row, d) => row.map((cost, c) => numberOr(state.loss?.[d]?.[c], COST_LIMITS, cost)));
  return { classes, loss, hand: handFrom(state.hand, classes.length) };
}

function handFrom(hand, size) {
  const { edges, decisions } = hand || {};
  if (!Array.isArray(edges) || !Array.isArray(decisions) || edges.length > MOST_EDGES) return null;
  const sorted = edges.every((edge, k) => Number.isFinite(edge) && (k === 0 || edges[k - 1] <= edge));
  const known = decisions.every((decision) => Number.isInteger(decision) && decision >= 0 && decision < size);
  return sorted && known && decisions.length === edges.length + 1 ? { edges, decisions } : null;
}
