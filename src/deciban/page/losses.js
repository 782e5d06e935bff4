// Editor for the cost of each decision under each class.

import { element } from "../web/dom.js";

// Classes that fit the editor; with more, every mistake costs 1 unless the model has other costs.
export const MAX_CLASSES_TABLED = 12;

const REJECT = "reject";

// Return the loss in which every mistake costs 1, without reject.
export function zeroOne(classes) {
  return { decisions: [...classes], costs: classes.map((_, k) => classes.map((_, c) => (k === c ? 0 : 1))), reject: null };
}

// Return the decisions and costs of a loss, including reject.
export function withReject({ decisions, costs, reject }) {
  if (reject === null) return { decisions, costs };
  return { decisions: [...decisions, REJECT], costs: [...costs, costs[0].map(() => reject)] };
}

function costOf(input, place) {
  const value = input.value.trim() === "" ? NaN : Number(input.value);
  if (!Number.isFinite(value)) throw new Error(`${place}: "${input.value}" is not a number`);
  return value;
}

function numberInput(label, value) {
  const input = element("input", { type: "text", inputmode: "decimal", autocomplete: "off", "aria-label": label });
  input.value = value;
  return input;
}

// Create the editor in an element. get() returns the entered loss or throws an Error; set(loss) fills the editor.
export function lossEditor(root, classes, changed) {
  const body = element("tbody");
  const reject = element("input", { type: "text", inputmode: "decimal", autocomplete: "off", id: "loss-reject",
    placeholder: "never" });
  let lines = [];

  function add(name, costs) {
    const decision = element("input", { type: "text", autocomplete: "off", "aria-label": "name of a decision", class: "decision" });
    decision.value = name;
    const inputs = classes.map((label, c) => numberInput(`cost if ${label}`, String(costs[c])));
    const remove = element("button", { type: "button", class: "remove" }, "×");
    const node = element("tr", {}, element("th", { scope: "row" }, decision),
      ...inputs.map((input) => element("td", {}, input)), element("td", {}, remove));
    const line = { node, decision, inputs };
    const named = () => {
      remove.setAttribute("aria-label", `Remove ${decision.value}`);
      inputs.forEach((input, c) => input.setAttribute("aria-label", `cost of ${decision.value} if ${classes[c]}`));
    };
    decision.addEventListener("input", named);
    remove.addEventListener("click", () => {
      lines = lines.filter((other) => other !== line);
      node.remove();
      changed();
      (lines[0] || { decision: reject }).decision.focus();
    });
    named();
    lines.push(line);
    body.append(node);
    return line;
  }

  const enter = (loss) => {
    lines = [];
    body.replaceChildren();
    loss.decisions.forEach((name, k) => add(name, loss.costs[k]));
    reject.value = loss.reject === null ? "" : String(loss.reject);
  };

  function entered() {
    if (!lines.length) throw new Error("add at least one decision");
    const decisions = lines.map(({ decision }) => decision.value.trim());
    const seen = new Set();
    for (const name of decisions) {
      if (name === "") throw new Error("enter a name for each decision");
      if (seen.has(name)) throw new Error(`two decisions are named ${name}; use different names`);
      seen.add(name);
    }
    const costs = lines.map(({ inputs }, k) => inputs.map((input, c) => costOf(input, `${decisions[k]} if ${classes[c]}`)));
    const left = reject.value.trim() === "" ? null : costOf(reject, "cost of rejecting");
    if (left !== null && left < 0) throw new Error("the cost of rejecting must be at least 0");
    if (left !== null && seen.has(REJECT)) throw new Error(`a decision is already named ${REJECT}; leave the cost of rejecting empty`);
    return { decisions, costs, reject: left };
  }

  const more = element("button", { type: "button" }, "Add a decision");
  more.addEventListener("click", () => {
    const line = add(`decision ${lines.length + 1}`, classes.map(() => 0.5));
    changed();
    line.decision.focus();
    line.decision.select();
  });
  const reset = element("button", { type: "button" }, "Every mistake costs 1");
  reset.addEventListener("click", () => {
    enter(zeroOne(classes));
    changed();
  });
  const head = element("tr", {}, element("th", { scope: "col" }, "decide"),
    ...classes.map((name) => element("th", { scope: "col" }, `if ${name}`)), element("td"));
  const caption = "Cost of each decision (rows) for each true class (columns).";
  const table = element("table", { class: "losses", "aria-label": caption }, element("thead", {}, head), body);
  root.append(element("p", { class: "quiet" }, caption), element("div", { class: "scroll" }, table),
    element("div", { class: "buttons" }, more, reset),
    element("div", { class: "field reject" }, element("label", { for: "loss-reject" }, "cost of rejecting (leaving the row undecided)"), reject));
  return { get: entered, set: enter };
}

// Fixed losses, for too many classes.
export function fixedLosses(root, classes) {
  let kept = zeroOne(classes);
  root.append(element("p", { class: "quiet" },
    `${classes.length} classes are too many to edit here; use deciban decide --costs FILE.`));
  return { get: () => kept, set(loss) { kept = loss; } };
}
