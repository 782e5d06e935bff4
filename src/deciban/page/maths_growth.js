// Free parameters of models of several columns, by the number of columns. Counts are exact (BigInt).

// Each model of columns with this many values (or of numbers): parameters per class, and parameters shared by all classes.
export const GROWTH_MODELS = {
  naive: { name: "naive table", formula: "d · (v − 1)", own: (d, v) => d * (v - 1n) },
  joint: { name: "joint table", formula: "vᵈ − 1", own: (d, v) => v ** d - 1n },
  "naive-gaussian": { name: "naive Gaussians", formula: "2 · d", own: (d) => 2n * d },
  linear: { name: "LDA", formula: "d (+ d · (d + 1) / 2 shared)", own: (d) => d, shared: (d) => (d * (d + 1n)) / 2n },
  quadratic: { name: "QDA", formula: "d + d · (d + 1) / 2", own: (d) => d + (d * (d + 1n)) / 2n },
};

// Return the parameters of a model per class, and of all classes with the prior, which has one less than classes.
export function parametersOf(model, columns, values, classes) {
  const [d, v, k] = [columns, values, classes].map(BigInt);
  const { own, shared = () => 0n } = GROWTH_MODELS[model];
  return { own: own(d, v), all: k * own(d, v) + shared(d) + k - 1n };
}

// The largest number of columns for which a model has at most as many parameters per class as there are rows.
export function columnsWithin(model, values, rows) {
  const fits = (d) => parametersOf(model, d, values, 2).own <= BigInt(rows);
  let high = 1;
  while (fits(high)) high *= 2;
  let low = Math.floor(high / 2);
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}

// Return a BigInt as its common logarithm, which may exceed the range of numbers.
export function logTen(count) {
  const digits = String(count);
  return digits.length - 1 + Math.log10(Number(`${digits[0]}.${digits.slice(1, 17)}`));
}

// Return exact texts of the counts, {combinations, perRow, [model]: {own, all}}; perRow: combinations for each row, rounded.
export function growthTexts(columns, values, classes, rows) {
  const combinations = BigInt(values) ** BigInt(columns);
  const perRow = (2n * combinations + BigInt(rows)) / (2n * BigInt(rows));
  const counts = Object.keys(GROWTH_MODELS).map((model) => {
    const { own, all } = parametersOf(model, columns, values, classes);
    return [model, { own: String(own), all: String(all) }];
  });
  return { combinations: String(combinations), perRow: String(perRow), ...Object.fromEntries(counts) };
}
