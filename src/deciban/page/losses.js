// The table of what each decision costs under each class, to be edited.

import { element } from "../web/dom.js";

// Classes of which there is a table; of more, every mistake costs 1 unless other losses are given.
export const MAX_CLASSES_TABLED = 12;

const REJECT = "reject";

// Every mistake costs 1, and nothing is left undecided.
export function zeroOne(classes) {
  return { decisions: [...classes], costs: classes.map((_, k) => classes.map((_, c) => (k === c ? 0 : 1))), reject: null };
}

// All decisions of a loss, with that to leave the row undecided.
export function withReject({ decisions, costs, reject }) {
  if (reject === null) return { decisions, costs };
  return { decisions: [...decisions, REJECT], costs: [...costs, costs[0].map(() => reject)] };
}

function costOf(input, place) {
  const value = input.value.trim() === "" ? NaN : Number(input.value);
  if (!Number.isFinite(value)) throw new Error(`${place}: "${input.value}" is no cost; enter a number`);
  return value;
}

function numberInput(label, value) {
  const input = element("input", { type: "text", inputmode: "decimal", autocomplete: "off", "aria-label": label });
  input.value = value;
  return input;
}

// The editor in an element. get(): the loss that is entered; an Error that names what cannot be. set(loss): enter one.
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
    if (!lines.length) throw new Error("there is no decision; add one");
    const decisions = lines.map(({ decision }) => decision.value.trim());
    const seen = new Set();
    for (const name of decisions) {
      if (name === "") throw new Error("a decision has no name; enter one");
      if (seen.has(name)) throw new Error(`there are two decisions ${name}; name them apart`);
      seen.add(name);
    }
    const costs = lines.map(({ inputs }, k) => inputs.map((input, c) => costOf(input, `${decisions[k]} if ${classes[c]}`)));
    const left = reject.value.trim() === "" ? null : costOf(reject, "to leave the row undecided");
    if (left !== null && left < 0) throw new Error("to leave the row undecided costs at least 0");
    if (left !== null && seen.has(REJECT)) throw new Error(`there is a decision ${REJECT} already; leave its cost empty`);
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
  const said = "What each decision costs, by what is true.";
  const table = element("table", { class: "losses", "aria-label": said }, element("thead", {}, head), body);
  root.append(element("p", { class: "quiet" }, said), element("div", { class: "scroll" }, table),
    element("div", { class: "buttons" }, more, reset),
    element("div", { class: "field reject" }, element("label", { for: "loss-reject" }, "cost of leaving the row undecided"), reject));
  return { get: entered, set: enter };
}

// Losses that are not edited: of very many classes.
export function fixedLosses(root, classes) {
  let kept = zeroOne(classes);
  root.append(element("p", { class: "quiet" },
    `${classes.length} classes are too many for a table here; deciban decide takes costs from a file.`));
  return { get: () => kept, set(loss) { kept = loss; } };
}
