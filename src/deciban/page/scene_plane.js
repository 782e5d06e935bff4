// Points in the plane to add, drag and remove, and the boundaries of three methods.

import { drawn, element } from "../web/dom.js";
import {
  decidedAt,
  fitPlane,
  GAUSSIAN_METHODS,
  gaussiansBy,
  PLANE_EXTENT,
  PLANE_METHODS,
  planeError,
  planeForms,
  tableGrid,
} from "./maths_plane.js";
import { examplePoints, PLANE_EXAMPLES } from "./maths_examples.js";
import {
  actionButton,
  choice,
  classDot,
  exampleButtons,
  followPointer,
  limited,
  liveStatus,
  notifyChange,
  numberTiles,
  oncePerFrame,
  sceneFrame,
  setData,
  sizedPicture,
  stepped,
} from "./controls.js";
import {
  asPercent,
  interactionNote,
  METHOD_WORDS,
  MAX_POINTS,
  PLANE_LIMITS,
  PLANE_NAMES,
  planeNote,
  planePointsFrom,
  showPlaneErrors,
} from "./scene_plane_numbers.js";
import { classColorsOf, drawPlaneLines, paintRegions, POINT_MARKS } from "./scene_plane_picture.js";

const POINT_STEP = 0.05;
export function mountPlaneScene(root) {
  const scene = sceneFrame(
    root,
    "plane",
    "Two columns, naive and joint",
    "Five models of the same points: three of Gaussians, which differ only in the covariance, and two of tables. " +
      "Click to add points of the selected class, drag them, and watch the boundaries; misclassified points have a ring.",
  );
  let points = examplePoints("Equal covariances");
  let tool = 0;
  let current = 0;
  const size = PLANE_NAMES.length;
  const status = liveStatus();
  const tiles = numberTiles();
  const note = element("p", { class: "quiet" });
  const interaction = element("p", { class: "note" });
  const panels = PLANE_METHODS.map(planePanel);
  const soon = oncePerFrame(update);

  function changed() {
    soon();
    notifyChange(scene);
  }

  function addPoint(x, y, kind) {
    if (points.length >= MAX_POINTS) return status.announce(`The maximum is ${MAX_POINTS} points; remove some first.`);
    points.push({
      x: limited(stepped(x, POINT_STEP), PLANE_LIMITS),
      y: limited(stepped(y, POINT_STEP), PLANE_LIMITS),
      kind,
    });
    current = points.length - 1;
    return changed();
  }

  function movePoint(k, x, y) {
    Object.assign(points[k], {
      x: limited(stepped(x, POINT_STEP), PLANE_LIMITS),
      y: limited(stepped(y, POINT_STEP), PLANE_LIMITS),
    });
    changed();
  }

  function removePoint(k) {
    points.splice(k, 1);
    current = Math.max(0, Math.min(current, points.length - 1));
    changed();
  }

  function planePanel(method, order) {
    const [title, words] = METHOD_WORDS[method];
    const canvas = element("canvas", { class: "regions", "aria-hidden": "true" });
    const attributes =
      order === 0
        ? {
            role: "group",
            "aria-label": "Points; arrow keys move one, Page Up and Page Down choose another, Delete removes it",
          }
        : { role: "img", "aria-label": `The same points with the boundary of ${title}` };
    const picture = sizedPicture(
      { ...attributes, class: "plane" },
      (width) => width,
      () => drawPanel(panel),
    );
    picture.node.prepend(canvas);
    const [lines, marks] = [drawn("g", { "aria-hidden": "true" }), drawn("g")];
    picture.svg.append(lines, marks);
    const numbers = element("dl", { class: "numbers" });
    const node = element(
      "div",
      { class: "card panel", "data-method": method },
      element("h3", {}, title),
      element("p", { class: "quiet" }, words),
      picture.node,
      numbers,
    );
    const panel = { method, order, node, canvas, picture, lines, marks, numbers };
    const valueAt = (event) => {
      const [x, y] = picture.placeOf(event);
      const wide = picture.svg.getBoundingClientRect().width;
      return [(x / wide) * PLANE_EXTENT, PLANE_EXTENT * (1 - y / wide)];
    };
    panel.valueAt = valueAt;
    picture.svg.addEventListener("click", (event) => {
      if (event.target.closest(".point") || tool === "remove") return;
      addPoint(...valueAt(event), tool);
    });
    return panel;
  }

  // Marks are reused, so that a point keeps focus and pointer while it moves.
  function keepMarks(panel) {
    const { marks, order } = panel;
    while (marks.children.length > points.length) marks.lastChild.remove();
    while (marks.children.length < points.length) {
      const k = marks.children.length;
      const mark = drawn(
        "g",
        order === 0
          ? { class: "point", role: "slider", "aria-valuemin": 0, "aria-valuemax": PLANE_EXTENT }
          : { class: "point" },
      );
      mark.append(drawn("circle", { class: "reach", r: 14 }), drawn("path", { class: "mark" }));
      followPointer(
        mark,
        (event) => movePoint(k, ...panel.valueAt(event)),
        (_, cancelled) => {
          if (tool === "remove" && !cancelled) removePoint(k);
        },
      );
      mark.addEventListener("focus", () => {
        current = k;
        soon();
      });
      if (order === 0) mark.addEventListener("keydown", (event) => keyOnPoint(event, k));
      mark.addEventListener("dblclick", () => removePoint(k));
      marks.append(mark);
    }
  }

  function keyOnPoint(event, k) {
    const by = event.shiftKey ? 0.5 : 0.1;
    const [dx, dy] = { ArrowLeft: [-by, 0], ArrowRight: [by, 0], ArrowUp: [0, by], ArrowDown: [0, -by] }[event.key] || [
      0, 0,
    ];
    const go = { PageDown: 1, PageUp: -1 }[event.key];
    if (dx || dy) movePoint(k, points[k].x + dx, points[k].y + dy);
    else if (go) focusPoint((k + go + points.length) % points.length);
    else if (event.key === "Delete" || event.key === "Backspace") {
      removePoint(k);
      update();
      if (points.length) focusPoint(current);
    } else return;
    event.preventDefault();
  }

  function focusPoint(k) {
    current = k;
    update();
    panels[0].marks.children[k].focus();
  }

  function drawMarks(panel, wide) {
    keepMarks(panel);
    points.forEach(({ x, y, kind }, k) => {
      const mark = panel.marks.children[k];
      const wrong = decidedAt(panel.grid, x, y) !== kind;
      const held = mark.classList.contains("held") ? " held" : "";
      mark.setAttribute("class", `point class-${kind}${wrong ? " wrong-side" : ""}${held}`);
      mark.setAttribute(
        "transform",
        `translate(${((x / PLANE_EXTENT) * wide).toFixed(2)} ${((1 - y / PLANE_EXTENT) * wide).toFixed(2)})`,
      );
      mark.lastChild.setAttribute("d", POINT_MARKS[kind]);
      if (panel.order) return;
      mark.setAttribute("tabindex", k === current ? "0" : "-1");
      mark.setAttribute("aria-label", `Point ${k + 1} of class ${PLANE_NAMES[kind]}`);
      mark.setAttribute("aria-valuenow", x);
      mark.setAttribute(
        "aria-valuetext",
        `x ${x.toFixed(2)}, y ${y.toFixed(2)}${wrong ? ", misclassified by LDA" : ""}`,
      );
    });
  }

  function drawPanel(panel) {
    if (!panel.grid) return;
    const wide = Number(panel.picture.svg.getAttribute("width"));
    paintRegions(panel.canvas, panel.grid, classColorsOf(scene), !points.length);
    drawPlaneLines(panel.lines, wide, panel.gaussians, panel.grid);
    drawMarks(panel, wide);
  }

  function update() {
    const fit = fitPlane(points, size);
    const truth = gaussiansBy(fit, "quadratic");
    const best = planeError(truth);
    for (const panel of panels) {
      const isGaussian = GAUSSIAN_METHODS.includes(panel.method);
      panel.gaussians = isGaussian ? gaussiansBy(fit, panel.method) : [];
      panel.grid = isGaussian ? [planeForms(panel.gaussians)] : tableGrid(points, size, panel.method === "joint-table");
      showPlaneErrors(panel, points, best, truth);
      panel.picture.redraw();
    }
    tiles.set([
      ["Points", String(points.length)],
      ["Bayes error of the fitted Gaussians", asPercent(best.error), "stressed"],
    ]);
    note.textContent = planeNote(fit, best.within);
    interaction.textContent = interactionNote(panels, points.length);
    interaction.hidden = !interaction.textContent;
    setData(scene, { points: points.length, error: best.error, within: best.within });
    status.announce(
      panels
        .map(({ method, mistakes }) => `${METHOD_WORDS[method][0]}: ${mistakes} of ${points.length} misclassified`)
        .join("; "),
    );
  }

  const kinds = PLANE_NAMES.map((name, k) => [k, classDot(k), `add ${name}`]);
  const tools = choice("Click to", "plane-tool", [...kinds, ["remove", "remove"]], {
    read: () => tool,
    write(value) {
      tool = value;
    },
  });
  const examples = exampleButtons(PLANE_EXAMPLES, (name) => {
    points = examplePoints(name);
    current = 0;
    changed();
  });
  const actions = element(
    "div",
    { class: "buttons" },
    actionButton("Add a point in the middle", () => {
      addPoint(PLANE_EXTENT / 2, PLANE_EXTENT / 2, tool === "remove" ? 0 : tool);
      focusPoint(current);
    }),
    actionButton("Remove all points", () => {
      points = [];
      changed();
    }),
  );
  scene.append(
    examples,
    tools.node,
    interaction,
    element("div", { class: "panels" }, ...panels.map(({ node }) => node), element("div", {}, actions, tiles.node, note)),
    status.node,
  );
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", soon);
  update();

  return {
    state: () => ({ points: points.map(({ x, y, kind }) => [x, y, kind]) }),
    restore(state) {
      const found = planePointsFrom(state);
      if (!found) return;
      points = found;
      current = 0;
      update();
    },
  };
}
