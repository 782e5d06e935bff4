// Bayes' theorem for two hypotheses: posterior, natural frequencies, decibans; in the words of `deciban bayes`.

// The belief after evidence of these likelihoods, or null where no hypothesis with a prior can produce it.
export function beliefAfter(before, likelihoods) {
  const joint = before.map((prior, k) => prior * likelihoods[k]);
  const highest = Math.max(...likelihoods.filter((_, k) => before[k] > 0));
  if (!(highest > 0)) return null;
  const scaled = before.map((prior, k) => (prior > 0 ? prior * (likelihoods[k] / highest) : 0));
  const whole = scaled[0] + scaled[1];
  return { before, likelihoods, joint, posterior: scaled.map((part) => part / whole) };
}

// The likelihoods of a test's result under "has it" and "has it not".
export function testLikelihoods(sensitivity, alarms, positive) {
  return positive ? [sensitivity, alarms] : [1 - sensitivity, 1 - alarms];
}

// The beliefs after each of several results of a test, up to the first that is impossible.
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

// The nearest whole number, of two equally near ones the even one.
export function nearestEven(value) {
  const low = Math.floor(value);
  const rest = value - low;
  if (rest !== 0.5) return rest < 0.5 ? low : low + 1;
  return low % 2 === 0 ? low : low + 1;
}

// How many of so many people each hypothesis holds for, which add up, and how many of these show the evidence.
function inWholeNumbers(belief, people) {
  const first = nearestEven(people * belief.before[0]);
  const has = [first, people - first];
  return { has, shown: has.map((group, k) => Math.min(group, nearestEven(people * belief.joint[k]))) };
}

// Whether whole numbers of so many people give the percentage of the posterior, and those below 10 are exact.
function holdsInWholeNumbers(belief, people) {
  const { shown } = inWholeNumbers(belief, people);
  const total = shown[0] + shown[1];
  const near = belief.joint.every(
    (joint, k) => people * joint >= 10 || Math.abs(people * joint - shown[k]) <= 1e-9,
  );
  return near && total > 0 && oneDecimal((100 * shown[0]) / total) === oneDecimal(100 * belief.posterior[0]);
}

// Of how many people to speak: 1,000, or as many more as it takes until the whole numbers give the percentage.
export function peopleFor(belief) {
  let people = 1000;
  while (people < 1e9 && !holdsInWholeNumbers(belief, people)) people *= 10;
  return people;
}

// A whole number with commas between thousands.
export function withCommas(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

// A percentage with one decimal, of equally near ones the even one: only quarters lie between two.
function oneDecimal(value) {
  return (value * 4) % 2 === 1 ? (nearestEven(value * 10) / 10).toFixed(1) : value.toFixed(1);
}

// Two sentences that tell a belief by people, as `deciban bayes` does.
export function frequencySentences(belief, names) {
  const people = peopleFor(belief);
  const { has, shown } = inWholeNumbers(belief, people);
  const lines = names.map(
    (name, k) => `${withCommas(has[k])} are ${name}, of whom ${withCommas(shown[k])} show the evidence`,
  );
  const total = shown[0] + shown[1];
  const exact = oneDecimal(100 * belief.posterior[0]);
  const rounded = total > 0 ? oneDecimal((100 * shown[0]) / total) : exact;
  const told = rounded === exact ? `${rounded}%` : `${rounded}% (${exact}% before rounding)`;
  return [
    `Of ${withCommas(people)} people, ${lines.join("; ")}.`,
    `So of the ${withCommas(total)} who show it, ${withCommas(shown[0])} are ${names[0]}: ${told}.`,
  ];
}

// How many of so many people have each truth and each result: [has it, not][shows the evidence, not], in whole numbers.
export function peopleInField(belief, people) {
  const { has, shown } = inWholeNumbers(belief, people);
  return has.map((group, k) => [shown[k], group - shown[k]]);
}

// A number with so many significant digits and no zeros at its end, as Python's format "g" writes it.
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

// Ten times the log10 of the odds of a probability.
export function decibansOf(probability) {
  return 10 * Math.log10(probability / (1 - probability));
}

// The probability that belongs to so many decibans.
export function probabilityOf(decibans) {
  return decibans >= 0 ? 1 / (1 + 10 ** (-decibans / 10)) : 10 ** (decibans / 10) / (1 + 10 ** (decibans / 10));
}
