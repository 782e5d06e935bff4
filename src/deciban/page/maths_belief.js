// Bayes' theorem for two hypotheses: posterior, natural frequencies, decibans; the same sentences as `deciban bayes`.

// Update a belief by these likelihoods; null if the evidence is impossible under every hypothesis.
export function beliefAfter(before, likelihoods) {
  const joint = before.map((prior, k) => prior * likelihoods[k]);
  const highest = Math.max(...likelihoods.filter((_, k) => before[k] > 0));
  if (!(highest > 0)) return null;
  const scaled = before.map((prior, k) => (prior > 0 ? prior * (likelihoods[k] / highest) : 0));
  const whole = scaled[0] + scaled[1];
  return { before, likelihoods, joint, posterior: scaled.map((part) => part / whole) };
}

// Return the likelihoods of a test result under "ill" and "well".
export function testLikelihoods(sensitivity, alarms, positive) {
  return positive ? [sensitivity, alarms] : [1 - sensitivity, 1 - alarms];
}

// Return the belief after each of several test results, up to the first impossible one.
export function testsInARow(prior, sensitivity, alarms, results) {
  const beliefs = [];
  let before = [prior, 1 - prior];
  for (const positive of results) {
    const belief = beliefAfter(before, testLikelihoods(sensitivity, alarms, positive));
    if (!belief) break;
    beliefs.push(belief);
    before = belief.posterior;
  }
  return beliefs;
}

// Round to the nearest integer, ties to even.
export function nearestEven(value) {
  const low = Math.floor(value);
  const rest = value - low;
  if (rest !== 0.5) return rest < 0.5 ? low : low + 1;
  return low % 2 === 0 ? low : low + 1;
}

// Return whole numbers for a population: members of each group (they add up), and those who have the evidence.
function inWholeNumbers(belief, people) {
  const first = nearestEven(people * belief.before[0]);
  const has = [first, people - first];
  return { has, shown: has.map((group, k) => Math.min(group, nearestEven(people * belief.joint[k]))) };
}

// True if whole numbers of this population give the percentage of the posterior; numbers below 10 must be exact.
function holdsInWholeNumbers(belief, people) {
  const { shown } = inWholeNumbers(belief, people);
  const total = shown[0] + shown[1];
  const near = belief.joint.every(
    (joint, k) => people * joint >= 10 || Math.abs(people * joint - shown[k]) <= 1e-9,
  );
  return near && total > 0 && oneDecimal((100 * shown[0]) / total) === oneDecimal(100 * belief.posterior[0]);
}

// Return the population size: 1,000, or the smallest power of ten for which whole numbers give the percentage.
export function peopleFor(belief) {
  let people = 1000;
  while (people < 1e9 && !holdsInWholeNumbers(belief, people)) people *= 10;
  return people;
}

// Format an integer with thousands separators.
export function withCommas(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

// Format a percentage with one decimal, ties to even.
function oneDecimal(value) {
  return (value * 4) % 2 === 1 ? (nearestEven(value * 10) / 10).toFixed(1) : value.toFixed(1);
}

// Return two sentences with natural frequencies, as `deciban bayes` prints them.
export function frequencySentences(belief, names) {
  const people = peopleFor(belief);
  const { has, shown } = inWholeNumbers(belief, people);
  const lines = names.map(
    (name, k) => `${withCommas(has[k])} are ${name}, of whom ${withCommas(shown[k])} have this evidence`,
  );
  const total = shown[0] + shown[1];
  const exact = oneDecimal(100 * belief.posterior[0]);
  const rounded = total > 0 ? oneDecimal((100 * shown[0]) / total) : exact;
  const percentage = rounded === exact ? `${rounded}%` : `${rounded}% (${exact}% before rounding)`;
  return [
    `Of ${withCommas(people)} people, ${lines.join("; ")}.`,
    `So of the ${withCommas(total)} who have it, ${withCommas(shown[0])} are ${names[0]}: ${percentage}.`,
  ];
}

// Return whole numbers of people by truth and result: [ill, well][shows the evidence, does not].
export function peopleInField(belief, people) {
  const { has, shown } = inWholeNumbers(belief, people);
  return has.map((group, k) => [shown[k], group - shown[k]]);
}

// Format a number with the given number of significant digits, as Python's format "g".
export function significant(value, digits) {
  if (value === 0 || !Number.isFinite(value)) return String(value);
  let [mantissa, exponent] = value.toExponential(digits - 1).split("e");
  const exact = value.toExponential(100).split("e")[0].replace(/0+$/, "");
  const tie = exact.length === digits + 2 + (value < 0 ? 1 : 0) && exact.endsWith("5");
  if (tie && Number(mantissa.at(-1)) % 2) {
    // toExponential rounds ties up, Python to the even digit
    mantissa = exact.slice(0, -1).replace(/\.$/, "");
  }
  const power = Number(exponent);
  const trimmed = mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa;
  if (power < -4 || power >= digits) {
    return `${trimmed}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
  }
  const plain = Number(`${trimmed}e${power}`).toFixed(Math.max(digits - 1 - power, 0));
  return plain.includes(".") ? plain.replace(/\.?0+$/, "") : plain;
}

// Convert a probability to decibans.
export function decibansOf(probability) {
  return 10 * Math.log10(probability / (1 - probability));
}

// Convert decibans to a probability.
export function probabilityOf(decibans) {
  return decibans >= 0 ? 1 / (1 + 10 ** (-decibans / 10)) : 10 ** (decibans / 10) / (1 + 10 ** (decibans / 10));
}
