// The decision of least expected loss, and what every decision risks.

import { digits, element } from "../web/dom.js";
import { leastRisk, risksOf } from "../web/risk.js";
import { withReject } from "./losses.js";

// Decisions that have a bar: those of least risk, if there are more.
const MAX_DECISIONS = 12;

function barOf(name, risk, most, isBest) {
  const fill = element("span", { class: "fill" });
  fill.style.width = `${Math.max(0, (100 * risk) / (most || 1))}%`;
  return element("li", { "data-decision": name, "data-risk": String(risk), class: isBest ? "best" : "" },
    element("span", { class: "name", title: name }, name), element("span", { class: "track" }, fill),
    element("span", { class: "number" }, digits(risk)));
}

// Show what is decided in one element, and the risks of all decisions in a list; the name of the decision.
export function showDecision(said, list, posterior, loss) {
  const { decisions, costs } = withReject(loss);
  const risks = risksOf(posterior, costs);
  const best = leastRisk(risks);
  said.dataset.decision = decisions[best];
  said.replaceChildren("Decide: ", element("strong", {}, decisions[best]), `, expected loss ${digits(risks[best])}.`);
  const few = risks.length <= MAX_DECISIONS;
  const places = risks.map((_, k) => k);
  const shown = few ? places : places.sort((a, b) => risks[a] - risks[b] || a - b).slice(0, MAX_DECISIONS);
  const most = Math.max(...shown.map((k) => Math.abs(risks[k])));
  list.replaceChildren(...shown.map((k) => barOf(decisions[k], risks[k], most, k === best)));
  return decisions[best];
}
