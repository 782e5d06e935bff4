// Documents of two classes as rolls of a die (multinomial) or tosses of a coin per word (Bernoulli).

import { probabilityOf } from "./maths_belief.js";
import { smoothedShare } from "./maths_counts.js";

export const DOCUMENT_ALPHA = 1;

// Training documents of two classes, in the order of the classes; `first` is the document shown first.
export const CORPORA = {
  Emails: {
    classes: ["ham", "spam"],
    documents: [
      ["meeting report", "meeting lunch free", "report money report", "lunch meeting report offer"],
      ["free money free click", "offer money money", "free offer click", "money free report"],
    ],
    first: "free free report free",
  },
  "China or not": {
    classes: ["not China", "China"],
    documents: [["Tokyo Japan Chinese"], ["Chinese Beijing Chinese", "Chinese Chinese Shanghai", "Chinese Macao"]],
    first: "Chinese Chinese Chinese Tokyo Japan",
  },
};

// Return what both models learn: the vocabulary, priors and, per class and word, counts and probabilities. A count is
// {count, rows, values, share}: share = (count + alpha) / (rows + alpha · values).
export function documentModel({ documents }) {
  const texts = documents.map((own) => own.map((text) => text.split(" ")));
  const words = [...new Set(texts.flat(2))];
  const counted = (count, rows, values) => ({
    count, rows, values, share: smoothedShare(count, rows, DOCUMENT_ALPHA, values),
  });
  const sizes = documents.map((own) => own.length);
  return {
    words,
    priors: sizes.map((size) => size / (sizes[0] + sizes[1])),
    die: texts.map((own) => {
      const all = own.flat();
      return words.map((word) => counted(all.filter((other) => other === word).length, all.length, words.length));
    }),
    coin: texts.map((own) =>
      words.map((word) => counted(own.filter((text) => text.includes(word)).length, own.length, 2)),
    ),
  };
}

const decibansFor = ([before, after]) => 10 * Math.log10(after / before);

// Return the evidence of each word, in decibans for the second class, by the die and by the coins; and their sums with
// the prior as probabilities. `times` is how often each word occurs. The multinomial coefficient is the same for both
// classes.
export function documentEvidence({ priors, die, coin }, times) {
  const prior = decibansFor(priors);
  const parts = {
    die: times.map((count, j) => count * decibansFor(die.map((own) => own[j].share))),
    coin: times.map((count, j) => decibansFor(coin.map((own) => (count ? own[j].share : 1 - own[j].share)))),
  };
  const total = (evidence) => evidence.reduce((sum, part) => sum + part, prior);
  const sums = { die: total(parts.die), coin: total(parts.coin) };
  return { prior, ...parts, sums, posterior: { die: probabilityOf(sums.die), coin: probabilityOf(sums.coin) } };
}

// Return the side of a die with these probabilities for a uniform number.
export function sideOf(shares, uniform) {
  let sum = 0;
  const side = shares.findIndex((share) => {
    sum += share;
    return uniform < sum;
  });
  return side < 0 ? shares.length - 1 : side;
}
