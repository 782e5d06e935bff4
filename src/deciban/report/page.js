// "What if": a form for the columns of the model that updates the posterior and the evidence.
// It needs decibanScorer (the scorer) and two scripts of JSON: #model-json and #what-if-data.

import { digits, element, percent } from "../web/dom.js";
import { rolledUp, scorerAnswer, waterfall } from "../web/evidence.js";
import { rowForm, scorerColumns, valuesIn } from "../web/form.js";
import { posteriorBars } from "../web/posterior.js";
import { leastRisk, risksOf } from "../web/risk.js";

const byId = (id) => document.getElementById(id);
const read = (id) => JSON.parse(byId(id).textContent);
const data = read("what-if-data");
const model = read("model-json");
const scorer = decibanScorer(model);
const columns = scorerColumns(model, scorer, data.columns);
const form = rowForm(columns, { shown: byId("what-if-form"), more: byId("what-if-more"), open: data.open, prefix: "cell" });
const showPosterior = posteriorBars(byId("what-if-posterior"), data);

function showEvidence(answer, best, other) {
  const title = `Evidence for ${data.classes[best]} against ${data.classes[other]}, in decibans`;
  const terms = rolledUp(answer.terms(best, other), data.terms);
  byId("what-if-evidence").replaceChildren(waterfall(terms, title, data.chart));
  byId("what-if-against").textContent = title;
}

function decisionOf(posterior) {
  const risks = risksOf(posterior, data.loss.costs);
  const best = leastRisk(risks);
  return `least-cost decision: ${data.loss.decisions[best]} (expected cost ${digits(risks[best])})`;
}

function update() {
  const problem = byId("what-if-problem");
  try {
    const answer = scorerAnswer(scorer, form.row());
    const [best, other] = answer.order;
    problem.textContent = "";
    showPosterior(answer.posterior, best);
    if (other !== undefined) showEvidence(answer, best, other);
    const result = `${data.classes[best]}: ${percent(answer.posterior[best])}`;
    byId("what-if-result").textContent = data.loss ? `${result}; ${decisionOf(answer.posterior)}` : result;
  } catch (error) {
    problem.textContent = error.message;
  }
}

function enter(values) {
  form.fill(valuesIn(values));
  update();
}

for (const { name, values } of data.rows) {
  const button = element("button", { type: "button" }, name);
  button.addEventListener("click", () => enter(values));
  byId("what-if-buttons").append(button);
}
byId("what-if-clear").addEventListener("click", () => enter({}));
byId("what-if").addEventListener("input", update);
byId("what-if").addEventListener("submit", (event) => event.preventDefault());
enter(data.start);
