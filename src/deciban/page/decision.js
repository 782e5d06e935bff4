// The least-cost decision and the expected loss of each decision.

import { digits, element } from "../web/dom.js";
import { leastRisk, risksOf } from "../web/risk.js";
import { withReject } from "./losses.js";

// Decisions with a bar; of more decisions, those of least risk.
const MAX_DECISIONS = 12;

function barOf(name, risk, highest, isBest) {
  const fill = element("span", { class: "fill" });
  fill.style.width = `${Math.max(0, (100 * risk) / (highest || 1))}%`;
  return element("li", { "data-decision": name, "data-risk": String(risk), class: isBest ? "best" : "" },
    element("span", { class: "name", title: name }, name), element("span", { class: "track" }, fill),
    element("span", { class: "number" }, digits(risk)));
}

// Show the decision in one element and the risks of all decisions in a list. Return the name of the decision.
export function showDecision(result, list, posterior, loss) {
  const { decisions, costs } = withReject(loss);
  const risks = risksOf(posterior, costs);
  const best = leastRisk(risks);
  result.dataset.decision = decisions[best];
  result.replaceChildren("Decide: ", element("strong", {}, decisions[best]), `, expected loss ${digits(risks[best])}.`);
  const few = risks.length <= MAX_DECISIONS;
  const places = risks.map((_, k) => k);
  const shown = few ? places : places.sort((a, b) => risks[a] - risks[b] || a - b).slice(0, MAX_DECISIONS);
  const highest = Math.max(...shown.map((k) => Math.abs(risks[k])));
  list.replaceChildren(...shown.map((k) => barOf(decisions[k], risks[k], highest, k === best)));
  return decisions[best];
}
