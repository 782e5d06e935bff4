// Bayes' theorem with natural frequencies: a thousand people as dots, and tests in a row.

import { drawn, element } from "../web/dom.js";
import {
  decibansOf,
  frequencySentences,
  peopleFor,
  peopleInField,
  significant,
  testsInARow,
  withCommas,
} from "./maths_belief.js";
import {
  buttonRow,
  colorKey,
  exampleButtons,
  liveStatus,
  namedTable,
  notifyChange,
  numberOr,
  rangeField,
  sceneFrame,
  scrollBox,
  setData,
  sizedPicture,
} from "./controls.js";

const PEOPLE = 1000;
const MAX_TESTS = 8;
const TRUTHS = ["ill", "well"];
const SHARE_LIMITS = [0, 1];
const THEOREM_EXAMPLES = {
  "A diagnosis": { prior: 0.05, sensitivity: 0.9, alarms: 0.08, results: [true] },
  "A rare disease": { prior: 0.001, sensitivity: 0.99, alarms: 0.05, results: [true] },
  "Positive twice": { prior: 0.05, sensitivity: 0.9, alarms: 0.08, results: [true, true] },
  "Positive, then negative": { prior: 0.05, sensitivity: 0.9, alarms: 0.08, results: [true, false] },
};
const FIELD_KINDS = ["ill-shown", "ill-hidden", "well-shown", "well-hidden"];

// Draw circles in one path, column by column, starting at position `first`.
function dotsPath(first, count, rows, cell) {
  const radius = cell * 0.36;
  return Array.from({ length: count }, (_, k) => {
    const [column, row] = [Math.floor((first + k) / rows), (first + k) % rows];
    const [x, y] = [(column + 0.5) * cell - radius, (row + 0.5) * cell];
    return (
      `M${x.toFixed(2)} ${y.toFixed(2)}a${radius.toFixed(2)} ${radius.toFixed(2)} 0 1 0 ${(2 * radius).toFixed(2)} 0` +
      `a${radius.toFixed(2)} ${radius.toFixed(2)} 0 1 0 ${(-2 * radius).toFixed(2)} 0Z`
    );
  }).join("");
}

// Evidence with its sign and one decimal, or an infinite one.
function signedDecibans(probability) {
  const value = decibansOf(probability);
  if (!Number.isFinite(value)) return value > 0 ? "+∞" : "−∞";
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(1)}`;
}

export function mountTheoremScene(root) {
  const scene = sceneFrame(
    root,
    "theorem",
    "A positive test: how worried should you be?",
    "Each dot is one of a thousand people. Color shows who is ill; a filled dot has the observed result. " +
      "The answer is the share of ill people among the filled dots, not the sensitivity of the test.",
  );
  let now = structuredClone(THEOREM_EXAMPLES["A diagnosis"]);
  let belief = null;
  const status = liveStatus();
  const share = (name, label) =>
    rangeField({
      label,
      limits: [0, 100],
      step: 0.1,
      unit: "%",
      scale: 100,
      read: () => now[name],
      write: (value) => change({ [name]: Number(value.toFixed(6)) }),
    });
  const fields = [
    share("prior", "ill before the test"),
    share("sensitivity", "positive if ill"),
    share("alarms", "positive if well"),
  ];
  const field = sizedPicture({ role: "img" }, (width) => fieldShape(width).height, drawField);
  const [sentence, tableHome, keyHome] = [
    element("p", { class: "saying" }),
    scrollBox("The calculation"),
    element("div", {}),
  ];
  const chain = element("ol", { class: "chain" });
  const note = element("p", { class: "quiet" });

  function change(next) {
    now = { ...now, ...next };
    update();
    notifyChange(scene);
  }

  // Fewer columns on a narrow screen.
  function fieldShape(width) {
    const columns = width < 520 ? 40 : 50;
    const rows = PEOPLE / columns;
    return { rows, cell: width / columns, height: (width / columns) * rows };
  }

  function drawField(width) {
    const { rows, cell } = fieldShape(width);
    if (!belief) return field.svg.replaceChildren();
    let first = 0;
    const counts = peopleInField(belief, PEOPLE).flat();
    return field.svg.replaceChildren(
      ...FIELD_KINDS.map((kind, k) => {
        const path = drawn("path", { class: `people ${kind}`, d: dotsPath(first, counts[k], rows, cell) });
        first += counts[k];
        return path;
      }),
    );
  }

  function showCalculation() {
    const parts = [belief.before, belief.likelihoods, belief.joint];
    const rows = TRUTHS.map((name, k) => [
      name,
      ...parts.map((part) => significant(part[k], 4)),
      element("td", {}, element("strong", {}, significant(belief.posterior[k], 6))),
    ]);
    tableHome.replaceChildren(
      namedTable({
        caption: "Prior times likelihood, normalized",
        head: ["", "prior", "likelihood", "joint", "posterior"],
        rows,
      }),
    );
  }

  function showField() {
    const [[illShown, illHidden], [wellShown, wellHidden]] = peopleInField(belief, PEOPLE);
    const result = now.results.at(-1) ? "positive" : "negative";
    const other = now.results.at(-1) ? "negative" : "positive";
    const texts = [
      `ill, ${result}: ${illShown}`,
      `ill, ${other}: ${illHidden}`,
      `well, ${result}: ${wellShown}`,
      `well, ${other}: ${wellHidden}`,
    ];
    keyHome.replaceChildren(colorKey(texts.map((text, k) => [FIELD_KINDS[k], text])));
    field.svg.setAttribute("aria-label", `A thousand people: ${texts.join("; ")}`);
    const people = peopleFor(belief);
    note.textContent =
      people === PEOPLE
        ? ""
        : `The dots are rounded to ${withCommas(PEOPLE)} people; the sentence uses a larger population.`;
  }

  // The probability before, and after each test.
  function showChain(beliefs) {
    const parts = [
      ["before", now.prior],
      ...beliefs.map(({ posterior }, k) => [`test ${k + 1} ${now.results[k] ? "positive" : "negative"}`, posterior[0]]),
    ];
    chain.replaceChildren(
      ...parts.map(([name, probability]) => {
        const fill = element("span", { class: "fill class-1" });
        fill.style.height = `${100 * probability}%`;
        return element(
          "li",
          {},
          element("span", { class: "column", "aria-hidden": "true" }, fill),
          element("span", { class: "number" }, `${(100 * probability).toFixed(1)}%`),
          element("span", { class: "quiet" }, `${signedDecibans(probability)} decibans`),
          element("span", { class: "name" }, name),
        );
      }),
    );
  }

  function update() {
    const beliefs = testsInARow(now.prior, now.sensitivity, now.alarms, now.results);
    belief = beliefs.length === now.results.length ? beliefs.at(-1) : null;
    fields.forEach((part) => part.refresh());
    showChain(beliefs);
    [addPositive, addNegative].forEach((button) => {
      button.disabled = now.results.length >= MAX_TESTS;
    });
    takeBack.disabled = now.results.length < 2;
    if (belief) {
      const sentences = frequencySentences(belief, TRUTHS);
      sentence.replaceChildren(`${sentences[0]} `, element("strong", {}, sentences[1]));
      showCalculation();
      showField();
      status.announce(sentences[1]);
    } else {
      sentence.textContent =
        "These results are impossible with these numbers, so the posterior is undefined.";
      for (const home of [tableHome, keyHome, note]) home.replaceChildren();
      status.announce(sentence.textContent);
    }
    field.redraw();
    setData(scene, {
      posterior: belief ? belief.posterior[0] : "",
      chain: beliefs.map(({ posterior }) => posterior[0]),
      people: belief ? peopleInField(belief, PEOPLE) : "",
    });
  }

  const tests = buttonRow("Tests in a row", [
    ["Add a positive test", () => change({ results: [...now.results, true] })],
    ["Add a negative test", () => change({ results: [...now.results, false] })],
    ["Remove the last test", () => change({ results: now.results.slice(0, -1) })],
  ]);
  const [addPositive, addNegative, takeBack] = tests.children;
  const examples = exampleButtons(Object.keys(THEOREM_EXAMPLES), (name) => change(structuredClone(THEOREM_EXAMPLES[name])));
  scene.append(
    examples,
    element("div", { class: "ranges" }, ...fields.map(({ node }) => node)),
    sentence,
    field.node,
    keyHome,
    note,
    element("h3", {}, "Tests in a row"),
    element(
      "p",
      { class: "quiet" },
      "The posterior after one test is the prior of the next (assuming independent errors). " +
        "The dots show the last test.",
    ),
    tests,
    element("div", { class: "two" }, chain, tableHome),
    status.node,
  );
  update();

  return {
    state: () => ({ ...now }),
    restore(state) {
      const base = THEOREM_EXAMPLES["A diagnosis"];
      const results = Array.isArray(state?.results) ? state.results.slice(0, MAX_TESTS).map(Boolean) : [];
      now = { results: results.length ? results : [true] };
      for (const name of ["prior", "sensitivity", "alarms"])
        now[name] = numberOr(state?.[name], SHARE_LIMITS, base[name]);
      update();
    },
  };
}
