// The families of single columns, each as {score(cells, weights, slots, out)}: it adds weight * evidence of each column
// to out[slot]. Sums are made in the order in which Python makes them, so that they are rounded alike.

const LARGEST = 1e290;
const TOO_LARGE = 1e140;

// Add what `add(j, weight, total)` finds of each column; columns of one slot are added up first.
function addColumns(weights, slots, out, classes, add) {
  let first = 0;
  while (first < weights.length) {
    const here = slots[first];
    const total = new Float64Array(classes);
    let last = first;
    for (; last < weights.length && slots[last] === here; last++) {
      if (weights[last] !== 0) add(last, weights[last], total);
    }
    for (let c = 0; c < classes; c++) out[here][c] += total[c];
    first = last;
  }
}

// Give probability 0 to every class where a cell lies outside the support.
function makeImpossible(outside, weights, slots, out) {
  outside.forEach((beyond, j) => {
    if (beyond && weights[j] > 0) out[slots[j]].fill(-Infinity);
  });
}

function lookup(table, start, classes, codesOf) {
  return {
    score(cells, weights, slots, out) {
      const codes = codesOf(cells);
      addColumns(weights, slots, out, classes, (j, weight, total) => {
        if (codes[j] < 0) return;
        const row = (start[j] + codes[j]) * classes;
        for (let c = 0; c < classes; c++) total[c] += weight * table[row + c];
      });
    },
  };
}

// What becomes of a value that was never seen: -1 leaves it out, otherwise the row of a zero count.
function unseenCode(unseen, column, shownValue, place, size) {
  if (unseen === "error") {
    throw badCell(column, `found ${shownValue}, ${place}`, "or choose unseen='ignore'");
  }
  return unseen === "smooth" ? size : -1;
}

function categorical(group, columns, context) {
  const start = decodedArray(group.start);
  const sets = group.levels.map((place) => context.levels[place]);
  return lookup(decodedArray(group.table), start, context.classes, (cells) =>
    columns.map((column, j) => {
      const code = sets[j].codeIn(column, cells[column.place]);
      if (code !== -2) return code;
      const found = shown(givenCell(column, cells[column.place]));
      return unseenCode(group.unseen, column, found, "never seen in training", start[j + 1] - start[j] - 1);
    })
  );
}

// x * 2**exponent, in steps that do not overflow by themselves.
function scaled(x, exponent) {
  let left = exponent;
  while (left > 1000) {
    x *= 2 ** 1000;
    left -= 1000;
  }
  while (left < -1000) {
    x *= 2 ** -1000;
    left += 1000;
  }
  return x * 2 ** left;
}

function binned(group, columns, context) {
  const start = decodedArray(group.start);
  const bins = group.cells.map(decodedArray);
  return lookup(decodedArray(group.table), start, context.classes, (cells) => {
    const numbers = columns.map((column) => finiteNumberIn(column, cells[column.place]));
    return numbers.map((x, j) => {
      if (Number.isNaN(x)) return -1;
      const wanted = Math.floor(scaled(x, -group.exponents[j]));
      const place = countUpTo(bins[j], wanted) - 1;
      if (place >= 0 && bins[j][place] === wanted) return place;
      return unseenCode(group.unseen, columns[j], shown(x), "in a bin never seen", bins[j].length);
    });
  });
}

function bernoulli(group, columns, { classes }) {
  const one = decodedArray(group.one);
  const zero = decodedArray(group.zero);
  return {
    score(cells, weights, slots, out) {
      columns.forEach((column, j) => {
        const x = numberIn(column, cells[column.place]);
        if (Number.isNaN(x)) return;
        if (group.flags_only && x !== 0 && x !== 1) throw unexpected(column, x, "0 or 1");
        if (weights[j] === 0) return;
        const table = x > group.threshold ? one : zero;
        for (let c = 0; c < classes; c++) out[slots[j]][c] += weights[j] * table[j * classes + c];
      });
    },
  };
}

// Counts of several columns in one block, each times its slope.
function linear(group, columns, { classes }) {
  const slope = decodedArray(group.slope);

  // What each column adds: the evidence is a sum as it is.
  function shares(cells) {
    return columns.map((column, j) => {
      const found = new Float64Array(classes);
      const x = numberIn(column, cells[column.place]);
      if (x < 0 || x === Infinity) throw unexpected(column, x, "a count: not negative, not infinite");
      const amount = Math.min(x, TOO_LARGE);
      if (Number.isNaN(amount) || amount === 0) return found;
      return found.map((_, c) => amount * slope[j * classes + c]);
    });
  }

  return {
    shares,
    score(cells, weights, slots, out) {
      const total = new Float64Array(classes);
      for (const share of shares(cells)) for (let c = 0; c < classes; c++) total[c] += share[c];
      if (weights[0] === 0) return;
      for (let c = 0; c < classes; c++) out[slots[0]][c] += weights[0] * total[c];
    },
  };
}

function normalTerms(group, classes) {
  const [centre, mean, root, offset] = [group.centre, group.mean, group.root, group.offset].map(decodedArray);
  return (numbers, weights, slots, out) =>
    addColumns(weights, slots, out, classes, (j, weight, total) => {
      const x = numbers[j] - centre[j];
      if (Number.isNaN(x)) return;
      for (let c = 0; c < classes; c++) {
        const z = (x - mean[j * classes + c]) * root[j * classes + c];
        total[c] += weight * (offset[j * classes + c] - z * z);
      }
    });
}

function normal(group, columns, { classes }) {
  const add = normalTerms(group, classes);
  return {
    score(cells, weights, slots, out) {
      const read = (column, j) => (weights[j] === 0 ? numberIn : finiteNumberIn)(column, cells[column.place]);
      add(columns.map(read), weights, slots, out);
    },
  };
}

function logNormal(group, columns, { classes }) {
  const add = normalTerms(group, classes);
  return {
    score(cells, weights, slots, out) {
      const numbers = columns.map((column) => finiteNumberIn(column, cells[column.place]));
      add(numbers.map((x) => (x > 0 ? Math.log(x) : NaN)), weights, slots, out);
      if (group.outside === "refuse") makeImpossible(numbers.map((x) => x <= 0), weights, slots, out);
    },
  };
}

// Add offset + power * log(x) + slope * x, of which 0 has only the first.
function addHalfLine(x, weight, terms, classes, out) {
  const value = Math.min(x, LARGEST);
  const logValue = Math.log(value);
  for (let c = 0; c < classes; c++) {
    const { offset, power, slope } = terms(c);
    out[c] += x === 0 ? weight * offset : weight * (offset + power * logValue + slope * value);
  }
}

function gamma(group, columns, { classes }) {
  const names = ["shape", "mean", "mean_low", "peak", "power", "slope", "offset"];
  const [shape, mean, low, peak, power, slope, offset] = names.map((name) => decodedArray(group[name]));
  // log x + log density is its peak, and falls from there with the distance from the mean
  function narrow(x, at) {
    const away = Math.min((x - mean[at] - low[at]) / mean[at], 1e250);
    const logRatio = Math.abs(away) < 0.5 ? Math.log1p(away) : Math.log(x) - Math.log(mean[at]);
    return peak[at] + shape[at] * (logRatio - away) - Math.log(x);
  }
  return {
    score(cells, weights, slots, out) {
      const numbers = columns.map((column) => finiteNumberIn(column, cells[column.place]));
      numbers.forEach((x, j) => {
        if (!(x > 0) || weights[j] === 0 || group.narrow[j]) return;
        const terms = (c) => {
          const at = j * classes + c;
          return { offset: offset[at], power: power[at], slope: slope[at] };
        };
        addHalfLine(x, weights[j], terms, classes, out[slots[j]]);
      });
      numbers.forEach((x, j) => {
        if (!(x > 0) || weights[j] === 0 || !group.narrow[j]) return;
        for (let c = 0; c < classes; c++) out[slots[j]][c] += weights[j] * narrow(x, j * classes + c);
      });
      if (group.outside === "refuse") makeImpossible(numbers.map((x) => x <= 0), weights, slots, out);
    },
  };
}

function poisson(group, columns, { classes }) {
  const rate = decodedArray(group.rate);
  const logRate = decodedArray(group.log_rate);
  const isCount = (x) => x >= 0 && x === Math.floor(x);
  return {
    score(cells, weights, slots, out) {
      const numbers = columns
        .map((column) => finiteNumberIn(column, cells[column.place]))
        .map((x) => (group.outside === "ignore" && !isCount(x) ? NaN : x));
      numbers.forEach((x, j) => {
        if (!isCount(x) || weights[j] === 0) return;
        const terms = (c) => ({ offset: -rate[j * classes + c], power: 0, slope: logRate[j * classes + c] });
        addHalfLine(x, weights[j], terms, classes, out[slots[j]]);
      });
      makeImpossible(numbers.map((x) => !Number.isNaN(x) && !isCount(x)), weights, slots, out);
    },
  };
}
