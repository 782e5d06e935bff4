// Expected losses and the decision of least risk, as deciban's `decide` finds them.

// The expected loss of each decision, from its costs by class.
export function risksOf(posterior, costs) {
  const isSame = (line) => line.every((cost) => cost === line[0]); // then no digit is lost to the posterior
  return costs.map((line) => (isSame(line) ? line[0] : line.reduce((sum, cost, c) => sum + cost * posterior[c], 0)));
}

// The place of the decision of least risk; ties go to the first.
export function leastRisk(risks) {
  return risks.indexOf(Math.min(...risks));
}
