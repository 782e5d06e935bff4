// The fourteen days of the weather table, and smoothed shares.

export const WEATHER_COLUMNS = ["outlook", "temperature", "humidity", "wind"];
export const WEATHER_CLASSES = ["no", "yes"]; // sorted, as in deciban

const WEATHER_LINES = `sunny hot high weak no
sunny hot high strong no
overcast hot high weak yes
rain mild high weak yes
rain cool normal weak yes
rain cool normal strong no
overcast cool normal strong yes
sunny mild high weak no
sunny cool normal weak yes
rain mild normal weak yes
sunny mild normal strong yes
overcast mild high strong yes
overcast hot normal weak yes
rain mild high strong no`;

// The days, each with its four cells and its class.
export const WEATHER_DAYS = WEATHER_LINES.split("\n").map((line) => {
  const cells = line.split(" ");
  return { ...Object.fromEntries(WEATHER_COLUMNS.map((column, k) => [column, cells[k]])), play: cells[4] };
});

// Return the values of a column in order of appearance.
export function weatherLevels(column) {
  return [...new Set(WEATHER_DAYS.map((day) => day[column]))];
}

// (count + alpha) / (rows + alpha · values)
export function smoothedShare(count, rows, alpha, values) {
  return (count + alpha) / (rows + alpha * values);
}

// Return the whole calculation for a day, {column: value}; columns without a value are ignored. Lists are in the order
// of WEATHER_CLASSES.
export function weatherSteps(chosen, alpha) {
  const ofClass = WEATHER_CLASSES.map((label) => WEATHER_DAYS.filter((day) => day.play === label));
  const rows = ofClass.map((days) => days.length);
  const priors = rows.map((count) => count / WEATHER_DAYS.length);
  const steps = WEATHER_COLUMNS.filter((column) => chosen[column]).map((column) => {
    const levels = weatherLevels(column).length;
    const counts = ofClass.map((days) => days.filter((day) => day[column] === chosen[column]).length);
    return {
      column,
      value: chosen[column],
      levels,
      counts,
      rows,
      shares: counts.map((count, k) => smoothedShare(count, rows[k], alpha, levels)),
    };
  });
  const joint = priors.map((prior, k) => steps.reduce((product, { shares }) => product * shares[k], prior));
  const whole = joint[0] + joint[1];
  const posterior = whole > 0 ? joint.map((part) => part / whole) : priors; // impossible under all: the prior
  return { rows, priors, steps, joint, posterior };
}
