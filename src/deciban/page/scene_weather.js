// The weather table: each step of naive Bayes for a chosen day, and the effect of smoothing.

import { drawn, element } from "../web/dom.js";
import {
  smoothedShare,
  WEATHER_CLASSES,
  WEATHER_COLUMNS,
  WEATHER_DAYS,
  weatherLevels,
  weatherSteps,
} from "./maths_counts.js";
import {
  actionButton,
  bottomTicks,
  classDot,
  exampleButtons,
  fractionCell,
  leftAxis,
  liveStatus,
  namedTable,
  notifyChange,
  numberOr,
  pathThrough,
  rangeField,
  sceneFrame,
  scrollBox,
  setData,
  sizedPicture,
} from "./controls.js";

const ALPHA_LIMITS = [0, 5];
const CLASS_PLACE = Object.fromEntries(WEATHER_CLASSES.map((label, k) => [label, k]));
const WEATHER_EXAMPLES = {
  "Sunny, cool, humid, windy": { outlook: "sunny", temperature: "cool", humidity: "high", wind: "strong" },
  "Overcast: tennis every time": { outlook: "overcast", temperature: "hot", humidity: "high", wind: "strong" },
  "Only rain is known": { outlook: "rain" },
};
const MAILS = [
  ["ham", 0, 100],
  ["spam", 30, 80],
];

// A label after the dot of its class.
function dottedLabel(label, kind = "td") {
  return element(kind, {}, classDot(CLASS_PLACE[label]), label);
}

// A bar as long as a probability.
function posteriorBar(label, probability) {
  const fill = element("span", { class: `fill class-${CLASS_PLACE[label]}` });
  fill.style.width = `${100 * probability}%`;
  return element(
    "li",
    {},
    element("span", { class: "name" }, label),
    element("span", { class: "track", "aria-hidden": "true" }, fill),
    element("span", { class: "number" }, `${(100 * probability).toFixed(2)}%`),
  );
}

export function mountWeatherScene(root) {
  const scene = sceneFrame(
    root,
    "weather",
    "Counting: a day for tennis?",
    "The training data are fourteen days. For the chosen day, multiply the prior of each class by the share of each value " +
      "among the days of that class, then divide by the sum: that is naive Bayes.",
  );
  let now = { chosen: { ...Object.values(WEATHER_EXAMPLES)[0] }, alpha: 0 };
  const status = liveStatus();
  const selects = Object.fromEntries(
    WEATHER_COLUMNS.map((column) => {
      const select = element("select", {}, element("option", { value: "" }, "(missing)"));
      select.append(...weatherLevels(column).map((level) => element("option", { value: level }, level)));
      select.addEventListener("change", () => change({ chosen: { ...now.chosen, [column]: select.value } }));
      return [column, select];
    }),
  );
  const smoothing = rangeField({
    label: "smoothing α",
    limits: ALPHA_LIMITS,
    step: 0.1,
    read: () => now.alpha,
    write: (alpha) => change({ alpha }),
  });
  const [daysHome, sumHome, wordHome] = ["The fourteen days", "The calculation", "An unseen word"].map(scrollBox);
  const barsHome = element("div", {});
  const curve = sizedPicture(
    { role: "img", "aria-label": "The posterior of yes, for each alpha from 0 to 5" },
    () => 130,
    drawCurve,
  );

  function change(next) {
    now = { ...now, ...next };
    update();
    notifyChange(scene);
  }

  function chooseDay(k) {
    change({ chosen: Object.fromEntries(WEATHER_COLUMNS.map((column) => [column, WEATHER_DAYS[k][column]])) });
    daysHome.querySelectorAll("button")[k].focus();
  }

  function showDays() {
    const rows = WEATHER_DAYS.map((day, k) => {
      const cells = WEATHER_COLUMNS.map((column) => {
        const same = day[column] === now.chosen[column];
        return element("td", same ? { class: `counted class-${CLASS_PLACE[day.play]}` } : {}, day[column]);
      });
      const name = actionButton(String(k + 1), () => chooseDay(k), {
        class: "plain",
        "aria-label": `Choose day ${k + 1}`,
      });
      return [name, ...cells, dottedLabel(day.play)];
    });
    daysHome.replaceChildren(
      namedTable({
        kind: "days",
        caption: "Cells that match the chosen day are marked",
        head: ["day", ...WEATHER_COLUMNS, "play"],
        rows,
      }),
    );
  }

  function showSum({ rows, priors, steps, joint, posterior }) {
    const priorCells = priors.map((prior, k) => fractionCell({ count: rows[k], rows: WEATHER_DAYS.length, alpha: 0, share: prior }));
    const stepRow = ({ column, value, levels, counts, shares }) => [
      `${column} = ${value}`,
      ...shares.map((share, k) =>
        fractionCell({ count: counts[k], rows: rows[k], alpha: now.alpha, values: levels, share }),
      ),
    ];
    sumHome.replaceChildren(
      namedTable({
        kind: "sum",
        caption: "The calculation",
        head: ["", ...WEATHER_CLASSES.map((label) => dottedLabel(label, "span"))],
        rows: [["prior", ...priorCells], ...steps.map(stepRow)],
        foot: [
          ["joint: the product", ...joint.map((part) => part.toFixed(5))],
          [
            "posterior: its share",
            ...posterior.map((part) => element("td", {}, element("strong", {}, part.toFixed(4)))),
          ],
        ],
      }),
    );
    barsHome.replaceChildren(
      element("ul", { class: "bars" }, ...WEATHER_CLASSES.map((label, k) => posteriorBar(label, posterior[k]))),
    );
  }

  function drawCurve(width, height) {
    const [left, bottom] = [30, height - 24];
    const x = (alpha) => left + ((width - left - 10) * alpha) / ALPHA_LIMITS[1];
    const y = (share) => bottom - share * (bottom - 10);
    const yes = (alpha) => weatherSteps(now.chosen, alpha).posterior[1];
    const path = pathThrough(Array.from({ length: 101 }, (_, k) => [x(k / 20), y(yes(k / 20))]));
    curve.svg.replaceChildren(
      ...bottomTicks([0, 1, 2, 3, 4, 5], x, height - 6, (alpha) => (alpha ? String(alpha) : "α = 0")),
      ...leftAxis({ ticks: [0, 0.5, 1], y, left, right: width }),
      drawn("path", { class: "curve class-1", d: path }),
      drawn("circle", { class: "knob class-1", cx: x(now.alpha), cy: y(yes(now.alpha)), r: 7 }),
    );
  }

  // Show an email with a word that never occurred in ham, and the effect of alpha.
  function showWord() {
    const shares = MAILS.map(([, count, rows]) => smoothedShare(count, rows, now.alpha, 2));
    const joint = MAILS.map(([, , rows], k) => (rows / 180) * shares[k]);
    const ham = joint[0] / (joint[0] + joint[1]);
    const rows = MAILS.map(([label, count, mails], k) => [
      label,
      `${count} of ${mails}`,
      fractionCell({ count, rows: mails, alpha: now.alpha, values: 2, share: shares[k] }),
    ]);
    const verdict =
      now.alpha === 0
        ? "Without smoothing, a single word rules out ham, regardless of the rest of the email."
        : `An email with the word is still spam, but ham is possible: ${(100 * ham).toFixed(2)}%.`;
    wordHome.replaceChildren(
      namedTable({ caption: "Emails that contain the word", head: ["", "seen", "P(word | class)"], rows }),
      element("p", {}, verdict),
    );
    setData(scene, { "word-ham": shares[0], "word-spam": shares[1] });
  }

  function update() {
    const found = weatherSteps(now.chosen, now.alpha);
    for (const [column, select] of Object.entries(selects)) select.value = now.chosen[column] || "";
    smoothing.refresh();
    showDays();
    showSum(found);
    showWord();
    curve.redraw();
    setData(scene, { joint: found.joint, posterior: found.posterior, alpha: now.alpha });
    status.announce(`Posterior: no ${found.posterior[0].toFixed(4)}, yes ${found.posterior[1].toFixed(4)}.`);
  }

  const examples = exampleButtons(Object.keys(WEATHER_EXAMPLES), (name) => change({ chosen: { ...WEATHER_EXAMPLES[name] } }));
  const fields = element(
    "div",
    { class: "fields" },
    ...WEATHER_COLUMNS.map((column) =>
      element("label", { class: "field" }, element("span", {}, column), selects[column]),
    ),
  );
  scene.append(
    examples,
    fields,
    smoothing.node,
    element(
      "div",
      { class: "two" },
      element(
        "div",
        { class: "stack" },
        element("div", { class: "card" }, sumHome, barsHome),
        element(
          "div",
          { class: "card" },
          element("h3", {}, "Effect of smoothing on this day"),
          element(
            "p",
            { class: "quiet" },
            "P(yes | day) as α grows: α is added to the count of each value of each column. " +
              "With a large α all values look alike, and only the prior 9/14 remains.",
          ),
          curve.node,
        ),
      ),
      element(
        "div",
        { class: "stack" },
        element("div", { class: "card" }, daysHome),
        element("div", { class: "card" }, element("h3", {}, "An unseen word"), wordHome),
      ),
    ),
    status.node,
  );
  update();

  return {
    state: () => ({ chosen: now.chosen, alpha: now.alpha }),
    restore(state) {
      const chosen = Object.fromEntries(
        WEATHER_COLUMNS.map((column) => {
          const level = state?.chosen?.[column];
          return [column, weatherLevels(column).includes(level) ? level : ""];
        }),
      );
      now = { chosen, alpha: numberOr(state?.alpha, ALPHA_LIMITS, 0) };
      update();
    },
  };
}
