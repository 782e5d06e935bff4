// How many parameters naive and joint models have, by the number of columns: the curse of dimensionality.

import { drawn, element } from "../web/dom.js";
import { withCommas } from "./maths_belief.js";
import { columnsWithin, GROWTH_MODELS, growthTexts, logTen, parametersOf } from "./maths_growth.js";
import {
  bottomTicks,
  colorKey,
  dragHandle,
  exampleButtons,
  leftAxis,
  liveStatus,
  namedTable,
  notifyChange,
  numberField,
  numberOr,
  numberTiles,
  pathThrough,
  rangeField,
  sceneFrame,
  scrollBox,
  setData,
  sizedPicture,
} from "./controls.js";

const GROWTH_LIMITS = { columns: [1, 40], values: [2, 10], classes: [2, 10], rows: [1, 1e12] };
const GROWTH_EXAMPLES = {
  "30 binary columns": { columns: 30, values: 2, classes: 2, rows: 1000 },
  "10 columns of 5 values": { columns: 10, values: 5, classes: 3, rows: 1000 },
  "4 columns of 3 values": { columns: 4, values: 3, classes: 2, rows: 1000 },
};
// Curves of the chart, with their colors.
const CURVES = { naive: "class-0", joint: "class-1", quadratic: "class-2" };
const GROWTH_MARGIN = { left: 46, right: 14, top: 22, bottom: 44 };

// 1, 10, 100, 1,000, then 10⁶ and so on.
function powerText(exponent) {
  if (exponent <= 3) return withCommas(10 ** exponent);
  return `10${[...String(exponent)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("")}`;
}

export function mountGrowthScene(root) {
  const scene = sceneFrame(
    root,
    "growth",
    "Why naive: parameters grow with the columns",
    "A joint table of d columns with v values each needs a probability for each of vᵈ combinations, less one, per class. " +
      "Naive Bayes assumes that columns are independent within a class, and needs d · (v − 1). Drag the number of columns.",
  );
  let now = { ...GROWTH_EXAMPLES["30 binary columns"] };
  const status = liveStatus();
  const tiles = numberTiles();
  const tableHome = scrollBox("Free parameters of each model");
  const sentence = element("p", { class: "saying" });
  const chart = sizedPicture(
    { role: "group", "aria-label": "Parameters per class by the number of columns, on a logarithmic axis" },
    (width) => Math.min(Math.max(width * 0.42, 260), 380),
    drawChart,
  );
  const curves = drawn("g", { "aria-hidden": "true" });
  const slide = dragHandle({
    label: "columns",
    kind: "reader",
    limits: () => GROWTH_LIMITS.columns,
    step: 1,
    read: () => now.columns,
    write: (columns) => change({ columns }),
    describe: (columns) => `${columns} columns`,
    pointed: (event) => scaleOf(chart.svg.getBoundingClientRect().width).value(chart.placeOf(event)[0]),
  });
  chart.svg.append(curves, slide.node);

  function change(next) {
    now = { ...now, ...next };
    update();
    notifyChange(scene);
  }

  function scaleOf(width) {
    const [low, high] = GROWTH_LIMITS.columns;
    const room = width - GROWTH_MARGIN.left - GROWTH_MARGIN.right;
    return {
      x: (columns) => GROWTH_MARGIN.left + ((columns - low) / (high - low)) * room,
      value: (place) => low + ((place - GROWTH_MARGIN.left) / room) * (high - low),
    };
  }

  function drawChart(width, height) {
    const { x } = scaleOf(width);
    const [top, bottom] = [GROWTH_MARGIN.top, height - GROWTH_MARGIN.bottom];
    const [first, last] = GROWTH_LIMITS.columns;
    const logOf = (model, columns) => logTen(parametersOf(model, columns, now.values, now.classes).own);
    const highest = Math.ceil(logOf("joint", last));
    const y = (log) => bottom - (log / highest) * (bottom - top);
    const every = highest > 20 ? 10 : 3;
    const ticks = Array.from({ length: Math.floor(highest / every) + 1 }, (_, k) => k * every);
    const all = Array.from({ length: last - first + 1 }, (_, k) => first + k);
    const rows = y(Math.min(Math.log10(now.rows), highest));
    curves.replaceChildren(
      ...leftAxis({ ticks, y, left: x(first), right: x(last), name: "parameters per class", show: powerText }),
      ...bottomTicks(all.filter((columns) => columns === 1 || columns % (width < 480 ? 10 : 5) === 0), x, bottom + 30),
      drawn("text", { class: "tick", x: (x(first) + x(last)) / 2, y: height - 1 }, "columns"),
      drawn("line", { class: "edge best", x1: x(first), x2: x(last), y1: rows, y2: rows }),
      drawn("text", { class: "tick end", x: x(last), y: rows - 6 }, `${withCommas(now.rows)} rows per class`),
      ...Object.entries(CURVES).map(([model, kind]) =>
        drawn("path", { class: `curve ${kind}`, d: pathThrough(all.map((columns) => [x(columns), y(logOf(model, columns))])) }),
      ),
      drawn("line", { class: "edge reader", x1: x(now.columns), x2: x(now.columns), y1: top, y2: bottom }),
      ...Object.entries(CURVES).map(([model, kind]) =>
        drawn("circle", { class: `read ${kind}`, cx: x(now.columns), cy: y(logOf(model, now.columns)), r: 4.5 }),
      ),
    );
    slide.place(x(now.columns), bottom);
  }

  function update() {
    const { columns, values, classes, rows } = now;
    const texts = growthTexts(columns, values, classes, rows);
    fields.forEach((field) => field.refresh());
    tiles.set([
      ["Combinations of values: vᵈ", withCommas(texts.combinations)],
      ["Joint table, per class", withCommas(texts.joint.own)],
      ["Naive table, per class", withCommas(texts.naive.own), "stressed"],
    ]);
    const few = Number(texts.perRow) > 1;
    sentence.textContent =
      `${withCommas(rows)} rows can contain ${few ? `at most 1 in ${withCommas(texts.perRow)}` : "most or all"} of the ` +
      "combinations. With one row per parameter, they suffice for" +
      ` ${withCommas(columnsWithin("joint", values, rows))} columns in a joint ` +
      `table, ${withCommas(columnsWithin("quadratic", values, rows))} in QDA, and ` +
      `${withCommas(columnsWithin("naive", values, rows))} in naive Bayes.`;
    tableHome.replaceChildren(
      namedTable({
        caption: `Free parameters for ${columns} columns and ${classes} classes`,
        head: ["model", "per class", "all classes and prior"],
        rows: Object.entries(GROWTH_MODELS).map(([model, { name, formula }]) => [
          element("span", {}, name, element("span", { class: "formula" }, formula)),
          withCommas(texts[model].own),
          withCommas(texts[model].all),
        ]),
      }),
    );
    setData(scene, { parameters: texts });
    status.announce(
      `${columns} columns: ${withCommas(texts.joint.own)} parameters per class in a joint table, ${withCommas(texts.naive.own)} in naive Bayes.`,
    );
    chart.redraw();
  }

  const range = (name, label) =>
    rangeField({
      label,
      limits: GROWTH_LIMITS[name],
      step: 1,
      read: () => now[name],
      write: (value) => change({ [name]: Math.round(value) }),
    });
  const fields = [
    range("columns", "columns (d)"),
    range("values", "values each (v)"),
    range("classes", "classes"),
    numberField({
      label: "rows per class",
      limits: GROWTH_LIMITS.rows,
      step: 1,
      read: () => now.rows,
      write: (rows) => change({ rows: Math.round(rows) }),
    }),
  ];
  const examples = exampleButtons(Object.keys(GROWTH_EXAMPLES), (name) => change(GROWTH_EXAMPLES[name]));
  scene.append(
    examples,
    chart.node,
    colorKey(Object.entries(CURVES).map(([model, kind]) => [`line ${kind}`, GROWTH_MODELS[model].name])),
    tiles.node,
    sentence,
    element("div", { class: "card" }, ...fields.slice(0, 3).map(({ node }) => node), fields[3].node),
    tableHome,
    element(
      "p",
      { class: "quiet" },
      "The tables are for columns of categories, the Gaussians for columns of numbers. Columns with different numbers of " +
        "values have their product of combinations: 3 · 3 · 2 · 2 = 36 in the weather table.",
    ),
    status.node,
  );
  update();

  return {
    state: () => ({ ...now }),
    restore(state) {
      const base = GROWTH_EXAMPLES["30 binary columns"];
      for (const name of Object.keys(GROWTH_LIMITS)) {
        now[name] = Math.round(numberOr(state?.[name], GROWTH_LIMITS[name], base[name]));
      }
      update();
    },
  };
}
