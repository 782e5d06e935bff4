// The tab "Try it": entered values update the posterior, the evidence, the shares of the columns and the decision.

import { element, percent } from "../web/dom.js";
import { rolledUp, waterfall } from "../web/evidence.js";
import { rowForm, valuesIn } from "../web/form.js";
import { posteriorBars } from "../web/posterior.js";
import { changedCells, showComparison } from "./comparison.js";
import { showDecision } from "./decision.js";
import { lossEditor, fixedLosses, MAX_CLASSES_TABLED, zeroOne } from "./losses.js";
import { showShares } from "./shares.js";

// Example rows with a button.
const MAX_ROWS = 12;

// Width of a chart (limits), and of a letter of its labels, in pixels.
const [MIN_WIDE, MAX_WIDE, LETTER] = [260, 640, 7.6];

function chartFor(node, chart) {
  const wide = Math.min(Math.max(node.clientWidth, MIN_WIDE), MAX_WIDE);
  return { ...chart, wide, label: Math.round(Math.min(chart.label, 0.36 * wide)), letter: LETTER, step: 24 };
}

function card(title, ...inside) {
  return element("section", { class: "card", "aria-label": title }, element("h2", {}, title), ...inside);
}

const button = (text, act, attributes = {}) => {
  const made = element("button", { type: "button", ...attributes }, text);
  made.addEventListener("click", act);
  return made;
};

// Return the prediction set of a row as a sentence.
function setInWords({ classes, set }, posterior) {
  const members = classes.filter((_, c) => posterior[c] >= set.thresholds[c]);
  return `Prediction set with ${set.stale ? "about " : ""}${percent(set.coverage)} coverage: {${members.join(", ")}}`;
}

// Create the parts of the panel that are filled later.
function parts(buttons) {
  const made = {
    result: element("span", { id: "result" }),
    problem: element("p", { class: "wrong", id: "problem", role: "alert" }),
    fields: element("div", { class: "fields" }),
    more: element("details", { hidden: "" }),
    posterior: element("ul", { class: "bars", id: "posterior" }),
    set: element("p", { class: "quiet", id: "set" }),
    risks: element("ul", { class: "bars", id: "risks" }),
    decided: element("p", { id: "decided" }),
    verdict: element("span", { id: "verdict" }),
    lossProblem: element("p", { class: "wrong", id: "loss-problem", role: "alert" }),
    losses: element("div", { class: "editor" }),
    against: element("p", { class: "quiet", id: "against" }),
    evidence: element("div", { id: "evidence" }),
    shares: element("ul", { class: "bars shares", id: "shares" }),
    parts: element("div", { class: "scroll" }),
    compared: element("div", { id: "compared" }),
    toLink: element("p", { class: "quiet", id: "link-status", role: "status" }),
  };
  const form = element("form", { autocomplete: "off", "aria-label": "The row" }, made.fields, made.more);
  form.addEventListener("submit", (event) => event.preventDefault());
  made.form = form;
  made.comparison = card("Comparison with the pinned row", made.compared, element("div", { class: "buttons" }, ...buttons.pinned));
  made.root = [
    element("div", { class: "bar" }, element("p", { class: "result", role: "status" }, made.result, made.verdict), made.problem),
    element("div", { class: "try" },
      card("Row", element("p", { class: "quiet" }, "An empty field is a missing value. If all fields are empty, the posterior is the prior."),
        element("div", { class: "buttons" }, ...buttons.rows), form,
        element("div", { class: "buttons" }, ...buttons.state), made.toLink),
      element("div", { class: "answers" },
        card("Posterior", made.posterior, made.set), made.comparison, card("Decision", made.decided, made.risks),
        card("Evidence", made.against, made.evidence),
        card("Share of each column", made.shares, element("details", {}, element("summary", {}, "details"), made.parts))),
      card("Costs", made.losses, made.lossProblem)),
  ];
  return made;
}

// Create the panel in an element. form: properties of the model for the form; source: scores rows; changed(state) is
// called after each change by the user. Returns use(source), state() and restore(state).
export function mountTryIt(root, form, source, changed) {
  let [pinned, turns, shown, touched] = [null, 0, null, false];
  const touch = () => {
    touched = true;
    update();
  };
  const enter = (values) => {
    fields.fill(values);
    touch();
  };
  const pinIt = () => {
    pinned = fields.texts();
    touch();
  };
  const buttons = {
    rows: [button("Clear", () => enter(() => null)),
      ...form.rows.slice(0, MAX_ROWS).map(({ name, values }) => button(name, () => enter(valuesIn(values))))],
    state: [button("Pin this row to compare", pinIt, { id: "pin" }), button("Copy link", copyLink, { id: "copy" })],
    pinned: [button("Back to the pinned row", () => enter((name) => new Map(pinned).get(name) ?? null)),
      button("Unpin", () => {
        pinned = null;
        touch();
      })],
  };
  const at = parts(buttons);
  root.replaceChildren(...at.root);
  const fields = rowForm(source.columns, { shown: at.fields, more: at.more, open: form.open, prefix: "cell" });
  const pinnedForm = rowForm(source.columns, { shown: element("div"), more: element("details"), open: 0, prefix: "pinned" });
  const showPosterior = posteriorBars(at.posterior, form);
  const tabled = form.classes.length <= MAX_CLASSES_TABLED;
  const losses = (tabled ? lossEditor : fixedLosses)(at.losses, form.classes, touch);
  losses.set({ reject: null, ...(form.loss || zeroOne(form.classes)) });

  function state() {
    let loss = null;
    try {
      loss = losses.get();
    } catch {
      // an invalid entry is not kept
    }
    return { row: fields.texts(), pinned, loss };
  }

  async function copyLink() {
    touched = true;
    await update();
    try {
      await navigator.clipboard.writeText(location.href);
      at.toLink.textContent = "Link copied: it opens this page with these values and costs.";
    } catch {
      at.toLink.textContent = "Copy the URL of this page: it contains these values and costs.";
    }
  }

  function pinnedRow() {
    pinnedForm.fill((name) => new Map(pinned).get(name) ?? null);
    return pinnedForm.row();
  }

  function draw({ answer, before, texts }) {
    const [best, other] = answer.order;
    const [name, chance] = [form.classes[best], answer.posterior[best]];
    at.result.replaceChildren(element("strong", {}, name), ` with probability ${percent(chance)}`);
    if (answer.impossible) at.result.append("; this row has probability 0 in every class, so the prior is shown");
    showPosterior(answer.posterior, best, before && before.posterior);
    at.set.textContent = form.set ? setInWords(form, answer.posterior) : "";
    at.comparison.hidden = before === null;
    const terms = other === undefined ? null : answer.terms(best, other);
    if (!terms) return;
    const direction = `for ${name} against ${form.classes[other]}`;
    at.against.replaceChildren(`Evidence ${direction}, in decibans: +10 multiplies the odds by 10. `,
      element("span", { class: "legend" }, ...["for", "against"].flatMap((word) => {
        const patch = element("span", { class: "patch" });
        patch.style.background = form.chart[word];
        return [patch, word, " "];
      })));
    const chart = chartFor(at.evidence, form.chart);
    const pairs = rolledUp(terms, form.terms);
    at.evidence.replaceChildren(waterfall(pairs, `evidence ${direction}, in decibans`, chart));
    showShares(at.shares, at.parts, terms, form.chart);
    if (before) {
      const [cells, old] = [changedCells(pinned, texts), before.terms(best, other)];
      showComparison(at.compared, { cells, now: terms, before: old, direction, maxTerms: form.terms, chart });
    }
  }

  function decide(posterior) {
    try {
      const name = showDecision(at.decided, at.risks, posterior, losses.get());
      at.verdict.replaceChildren("; decide ", element("strong", {}, name));
      at.lossProblem.textContent = "";
      return true;
    } catch (error) {
      at.lossProblem.textContent = error.message;
      at.verdict.replaceChildren();
      at.risks.replaceChildren();
      delete at.decided.dataset.decision;
      at.decided.textContent = "No decision: the costs are invalid.";
      return false;
    }
  }

  async function update() {
    const turn = ++turns;
    at.toLink.textContent = "";
    try {
      const [row, texts] = [fields.row(), fields.texts()];
      if (source.delay && shown) await new Promise((done) => setTimeout(done, source.delay));
      if (turn !== turns) return;
      const before = pinned ? await source.answer(pinnedRow()) : null;
      const answer = await source.answer(row);
      if (turn !== turns) return;
      at.problem.textContent = "";
      shown = { answer, before, texts };
      draw(shown);
    } catch (error) {
      if (turn === turns) at.problem.textContent = error.message;
      return;
    }
    if (decide(shown.answer.posterior) && touched) changed(state());
  }

  at.form.addEventListener("input", touch);
  at.losses.addEventListener("input", touch);
  new ResizeObserver(() => shown && draw(shown)).observe(at.evidence);
  fields.fill(valuesIn(form.start));
  update();
  return {
    columns: source.columns,
    state,
    use(other) {
      source = other;
      return update();
    },
    restore(kept) {
      const row = new Map(kept.row);
      fields.fill((name) => row.get(name) ?? null);
      pinned = kept.pinned;
      const fits = kept.loss && kept.loss.costs.length && kept.loss.costs.every((line) => line.length === form.classes.length);
      if (fits) losses.set(kept.loss);
      return update();
    },
  };
}
