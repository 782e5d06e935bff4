// Scoring of rows: by the scorer in the page or, for a model that cannot be exported, by the service.

import { scorerAnswer } from "../web/evidence.js";
import { scorerColumns } from "../web/form.js";
import { bestFirst } from "../web/posterior.js";
import { ask } from "./client.js";

// Milliseconds without typing before a request is sent.
const DEBOUNCE = 120;

// Score rows in the page; form: further properties of the columns.
export function answersOfScorer(model, form) {
  const scorer = decibanScorer(model);
  return {
    classes: scorer.classes.map(String),
    columns: scorerColumns(model, scorer, form.columns),
    delay: 0,
    answer: (row) => scorerAnswer(scorer, row),
  };
}

// Convert a term of the service's response.
function termsOf({ term, column, decibans, own, joint, correction }) {
  const role = term === "prior" || term === "limit" ? term : "column";
  return { name: column ?? term, value: decibans, role, own, joint, correction };
}

const negated = (term) => Object.fromEntries(
  Object.entries(term).map(([key, value]) => [key, typeof value === "number" ? -value : value]));

// Score rows by the service, which returns evidence for the predicted class against the most probable other.
export function answersOfService(form) {
  const placeOf = (label, otherwise) => {
    const place = form.classes.indexOf(String(label));
    return place < 0 ? otherwise : place;
  };
  return {
    classes: form.classes,
    columns: form.columns,
    delay: DEBOUNCE,
    async answer(row) {
      const cells = form.named ? row : form.order.map((name) => row[name] ?? null);
      const { rows: [found] } = await ask("explain", { rows: [cells] });
      const posterior = form.classes.map((name) => found.posterior[name]);
      const order = bestFirst(posterior, placeOf(found.predicted, -1));
      const [best, other] = [order[0], placeOf(found.against, order[1])];
      const terms = found.evidence.map(termsOf);
      return {
        posterior,
        order,
        impossible: found.against === null && posterior.length > 1,
        terms(first, second) {
          if (first === best && second === other) return terms;
          return first === other && second === best ? terms.map(negated) : null;
        },
      };
    },
  };
}
