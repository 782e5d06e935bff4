// The decision of least expected loss, and what every decision risks.

import { digits, element } from "../web/dom.js";
import { leastRisk, risksOf } from "../web/risk.js";
import { withReject } from "./losses.js";

function barOf(name, risk, most, isBest) {
  const fill = element("span", { class: "fill" });
  fill.style.width = `${Math.max(0, (100 * risk) / (most || 1))}%`;
  return element("li", { "data-decision": name, "data-risk": String(risk), class: isBest ? "best" : "" },
    element("span", { class: "name", title: name }, name), element("span", { class: "track" }, fill),
    element("span", { class: "number" }, digits(risk)));
}

// Show what is decided in one element, and the risks of all decisions in a list.
export function showDecision(said, list, posterior, loss) {
  const { decisions, costs } = withReject(loss);
  const risks = risksOf(posterior, costs);
  const best = leastRisk(risks);
  said.dataset.decision = decisions[best];
  said.replaceChildren("Decide: ", element("strong", {}, decisions[best]), `, expected loss ${digits(risks[best])}.`);
  const most = Math.max(...risks.map(Math.abs));
  list.replaceChildren(...risks.map((risk, k) => barOf(decisions[k], risk, most, k === best)));
}
