// Expected losses and the decision of least risk, as in deciban's `decide`.

// Return the expected loss of each decision from its costs by class.
export function risksOf(posterior, costs) {
  const isSame = (line) => line.every((cost) => cost === line[0]); // then no rounding error is added
  return costs.map((line) => (isSame(line) ? line[0] : line.reduce((sum, cost, c) => sum + cost * posterior[c], 0)));
}

// Return the position of the decision of least risk; ties go to the first.
export function leastRisk(risks) {
  return risks.indexOf(Math.min(...risks));
}
