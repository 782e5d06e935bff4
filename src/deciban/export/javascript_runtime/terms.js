// Terms of a model, each {columns, read(row), score(row)}. The score has a number per class, or is null if it adds
// nothing. A term of several columns has shares(row), the share of each of them, and may have evidence(row), the term
// with the parts common to all classes. Sums have the same order as in Python, so that they are rounded equally.

// Larger numbers are reduced to this, so that Infinity - Infinity never occurs.
const MAX_AMOUNT = 1e290;

// Larger numbers cannot be squared and summed.
const TOO_LARGE = 1e140;

// Code of a tuple member that is summed over.
const SUMMED_OVER = -1;

// Maximum number of columns for which all subsets are evaluated.
const MAX_ENUMERATED = 10;

// Maximum number of cached eigendecompositions, one per set of present columns.
const MAX_KEPT = 64;

// Return the Shapley value of each player; valueOf(set of players, as bits) has a value per class.
function shapleyShares(valueOf, players, classes) {
  const values = Array.from({ length: 2 ** players }, (_, set) => valueOf(set));
  const weights = shapleyWeights(players);
  return Array.from({ length: players }, (_, p) => {
    const share = new Float64Array(classes);
    values.forEach((before, set) => {
      if (set & (1 << p)) return;
      const after = values[set | (1 << p)];
      for (let c = 0; c < classes; c++) share[c] += weights[bitCount(set)] * gain(before[c], after[c]);
    });
    return share;
  });
}

// Return the Shapley weight of sets of other players, by their size.
function shapleyWeights(players) {
  const found = [];
  let choose = 1;
  for (let size = 0; size < players; size++) {
    found.push(1 / (players * choose));
    choose = (choose * (players - 1 - size)) / (size + 1);
  }
  return found;
}

function bitCount(set) {
  let count = 0;
  for (let left = set; left; left &= left - 1) count++;
  return count;
}

// Return the gain of a value; 0 if it was -Infinity already.
function gain(before, after) {
  return before > -Infinity ? after - before : 0;
}

// Return the mean gain of each player over the players before it, in some orders.
function sharesByOrders(valueOf, orders, players, classes) {
  const shares = Array.from({ length: players }, () => new Float64Array(classes));
  const count = orders.length / players;
  for (let o = 0; o < count; o++) {
    const known = new Array(players).fill(false);
    let before = valueOf(known);
    for (let k = 0; k < players; k++) {
      const player = orders[o * players + k];
      known[player] = true;
      const after = valueOf(known);
      for (let c = 0; c < classes; c++) shares[player][c] += gain(before[c], after[c]) / count;
      before = after;
    }
  }
  return shares;
}

// Return the eigenvalues and eigenvectors (axes[row][k] belongs to value k) of a symmetric matrix, by Jacobi rotations.
function eigenvectors(matrix) {
  const size = matrix.length;
  const a = matrix.map((row) => Float64Array.from(row));
  const axes = matrix.map((_, i) => Float64Array.from(matrix, (__, j) => (i === j ? 1 : 0)));
  for (let sweep = 0; sweep < 60; sweep++) {
    let turned = false;
    for (let p = 0; p < size - 1; p++) {
      for (let q = p + 1; q < size; q++) {
        if (Math.abs(a[p][q]) <= 1e-17 * Math.sqrt(Math.abs(a[p][p] * a[q][q]))) continue;
        turned = true;
        turn(a, axes, p, q);
      }
    }
    if (!turned) break;
  }
  return { values: a.map((row, i) => row[i]), axes };
}

function turn(a, axes, p, q) {
  const theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
  const t = (theta >= 0 ? 1 : -1) / (Math.abs(theta) + Math.hypot(theta, 1));
  const cosine = 1 / Math.hypot(t, 1);
  const sine = t * cosine;
  const shift = t * a[p][q];
  a[p][p] -= shift;
  a[q][q] += shift;
  a[p][q] = 0;
  a[q][p] = 0;
  for (let k = 0; k < a.length; k++) {
    if (k !== p && k !== q) {
      const [x, y] = [a[k][p], a[k][q]];
      a[p][k] = a[k][p] = cosine * x - sine * y;
      a[q][k] = a[k][q] = sine * x + cosine * y;
    }
    const [x, y] = [axes[k][p], axes[k][q]];
    axes[k][p] = cosine * x - sine * y;
    axes[k][q] = sine * x + cosine * y;
  }
}

// Return (log a - log b) / (a - b), or 1 / a if they are equal.
function inverseLogarithmicMean(a, b) {
  const ratio = a / b - 1;
  return (Math.abs(ratio) < 1e-8 ? 1 - ratio / 2 : Math.log1p(ratio) / ratio) / b;
}

// Return the share of each column in the log density at z of a normal distribution with mean 0. The term -log(2 pi)/2
// of each column is left out.
function gradualNormalShares(z, { values, axes }) {
  const size = z.length;
  const along = values.map((_, k) => z.reduce((sum, each, i) => sum + each * axes[i][k], 0));
  const means = values.map((a) => Float64Array.from(values, (b) => inverseLogarithmicMean(a, b)));
  const logs = values.map(Math.log);
  return z.map((_, i) => {
    const turned = Float64Array.from(along, (each, k) => axes[i][k] * each);
    let quadratic = 0;
    let volume = 0;
    for (let k = 0; k < size; k++) {
      let sum = 0;
      for (let m = 0; m < size; m++) sum += turned[m] * means[m][k];
      quadratic += sum * turned[k];
      volume += axes[i][k] * axes[i][k] * logs[k];
    }
    return -0.5 * (quadratic + volume);
  });
}

// Return shares (column by class) adjusted to the final evidence of the block. If a cap limited the evidence, they are
// relative to the best class too. Rounding errors are distributed to the columns in proportion to their shares.
function adjustShares(shares, evidence, limited) {
  const best = evidence.indexOf(largest(evidence));
  const present = shares.map((share) => share.some((value) => value !== 0));
  const count = Math.max(present.filter(Boolean).length, 1);
  const found = shares.map((share) => new Float64Array(share.length));
  evidence.forEach((whole, c) => {
    let own = shares.map((share) => (limited ? share[c] - share[best] : share[c]));
    if (limited) {
      const sum = own.reduce((total, value) => total + value, 0);
      const scale = whole === 0 ? 0 : sum < 0 ? whole / sum : NaN;
      own = own.map((value) => value * scale);
    }
    const finite = Number.isFinite(whole);
    const unknown = own.some(Number.isNaN) || (finite && !own.every(Number.isFinite));
    if (unknown) own = own.map((_, k) => (present[k] ? whole / count : 0));
    const size = own.reduce((total, value) => total + Math.abs(value), 0);
    const rest = whole - own.reduce((total, value) => total + value, 0);
    own.forEach((value, k) => (found[k][c] = finite && size > 0 ? value + (Math.abs(value) / size) * rest : value));
  });
  return found;
}

function lookupTerm({ table, place }, columns, { classes }) {
  const rows = decodeArray(table);
  const rowOf = (row) => classes * row.place(place);
  return { columns, read: rowOf, score: (row) => rows.subarray(rowOf(row), rowOf(row) + classes) };
}

// Return a term that is a function of a number inside the support. Outside, every class has probability 0, or the cell
// counts as missing.
function densityTerm([column], impossible, classes, inside, density) {
  return {
    columns: [column],
    read: (row) => row.number(column),
    score(row) {
      const x = row.number(column);
      if (inside(x)) return density(x);
      return impossible && !Number.isNaN(x) ? new Float64Array(classes).fill(-Infinity) : null;
    },
  };
}

const isPositive = (x) => x > 0;
const isCount = (x) => x >= 0 && x === Math.floor(x);

function normalTerm(term, columns, { classes }) {
  const [mean, root, offset] = [term.mean, term.root, term.offset].map(decodeArray);
  const center = decodeNumber(term.center);
  const density = (x) => {
    const away = (term.of_log ? Math.log(x) : x) - center;
    return mean.map((middle, c) => {
      const z = (away - middle) * root[c];
      return offset[c] - z * z;
    });
  };
  return densityTerm(columns, term.impossible, classes, term.of_log ? isPositive : (x) => !Number.isNaN(x), density);
}

// Return the term offset + power * log(x) + slope * x; for 0 only the offset.
function halfLineTerm(term, columns, { classes }) {
  const [offset, power, slope] = [term.offset, term.power, term.slope].map(decodeArray);
  const density = (x) => {
    if (x === 0) return offset;
    const value = Math.min(x, MAX_AMOUNT);
    const logValue = Math.log(value);
    return offset.map((first, c) => first + power[c] * logValue + slope[c] * value);
  };
  return densityTerm(columns, term.impossible, classes, term.counts ? isCount : isPositive, density);
}

// Return a term for narrow gamma distributions, computed from the distance to the mean.
function narrowGammaTerm(term, columns, { classes }) {
  const [peak, shape, mean, low] = [term.peak, term.shape, term.mean, term.mean_low].map(decodeArray);
  const density = (x) =>
    peak.map((top, c) => {
      const away = Math.min((x - mean[c] - low[c]) / mean[c], 1e250);
      const logRatio = Math.abs(away) < 0.5 ? Math.log1p(away) : Math.log(x) - Math.log(mean[c]);
      return top + shape[c] * (logRatio - away);
    });
  return densityTerm(columns, term.impossible, classes, isPositive, density);
}

function linearTerm(term, columns, { classes }) {
  const slope = decodeArray(term.slope);
  return densityTerm(columns, false, classes, isPositive, (x) => slope.map((one) => Math.min(x, TOO_LARGE) * one));
}

// Return a term for joint normal distributions: a whitened form for complete rows, matrices for rows with missing cells.
function jointNormalTerm(term, columns, { classes }) {
  const names = ["group", "center", "reach", "whiten", "white_mean", "offset", "unit", "mean", "covariance"];
  const [of, center, reach, whiten, whiteMean, offset, unit, mean, covariance] = names.map((name) =>
    decodeArray(term[name])
  );
  const size = columns.length;
  const half = (size * (size + 1)) / 2;
  const stride = reach.reduce((sum, count) => sum + count, 0);

  // Return the log densities of a complete row: offset - |whiten (x - center) - mean|**2.
  function whole(x) {
    const found = new Float64Array(classes);
    const white = new Float64Array(reach.length);
    let last = -1;
    for (let c = 0; c < classes; c++) {
      if (of[c] !== last) {
        last = of[c];
        let at = last * stride;
        for (let m = 0; m < reach.length; m++) {
          let sum = 0;
          for (let k = 0; k < reach[m]; k++) sum += whiten[at++] * (x[k] - center[k]);
          white[m] = sum;
        }
      }
      let distance = 0;
      for (let m = 0; m < reach.length; m++) {
        const z = white[m] - whiteMean[c * reach.length + m];
        distance += z * z;
      }
      found[c] = offset[c] - (Number.isNaN(distance) ? Infinity : distance);
    }
    return found;
  }

  // Return the Cholesky factor for the present columns, row by row, and the sum of its log diagonal.
  function factor(g, kept) {
    const root = kept.map(() => new Float64Array(kept.length));
    let logRoot = 0;
    for (let a = 0; a < kept.length; a++) {
      for (let b = 0; b <= a; b++) {
        let sum = covariance[g * half + (kept[a] * (kept[a] + 1)) / 2 + kept[b]];
        for (let k = 0; k < b; k++) sum -= root[a][k] * root[b][k];
        root[a][b] = a === b ? Math.sqrt(sum) : sum / root[b][b];
      }
      logRoot += Math.log(root[a][a]);
    }
    return { root, logRoot };
  }

  // Return the log densities of the present columns; the others are integrated out.
  function holed(x) {
    const kept = present(x);
    const found = new Float64Array(classes);
    let constant = 0;
    for (const k of kept) constant -= Math.log(unit[k]) + 0.5 * Math.log(2 * Math.PI);
    let last = -1;
    let made = null;
    for (let c = 0; c < classes; c++) {
      if (of[c] !== last) made = factor((last = of[c]), kept);
      const white = new Float64Array(kept.length);
      let distance = 0;
      kept.forEach((k, a) => {
        let sum = (x[k] - center[k]) / unit[k] - mean[c * size + k];
        for (let b = 0; b < a; b++) sum -= made.root[a][b] * white[b];
        white[a] = sum / made.root[a][a];
        distance += white[a] * white[a];
      });
      found[c] = constant - made.logRoot - 0.5 * (Number.isNaN(distance) ? Infinity : distance);
    }
    return found;
  }

  const numbersOf = (row) => columns.map((column) => row.number(column));
  const present = (x) => Array.from(x.keys()).filter((k) => !Number.isNaN(x[k]));

  // Return the log densities with the terms common to all classes, which `whole` may leave out.
  function evidenceOf(x) {
    return reach.length < size || x.some(Number.isNaN) ? holed(x) : whole(x);
  }

  const eigen = new Map();

  // Return the eigenvectors of the matrix of some columns; the latest ones are cached.
  function eigenOf(g, kept) {
    const key = `${g}:${kept.join()}`;
    if (!eigen.has(key)) {
      if (eigen.size >= MAX_KEPT) eigen.clear();
      const at = (a, b) => covariance[g * half + (a * (a + 1)) / 2 + b];
      eigen.set(key, eigenvectors(kept.map((a) => kept.map((b) => at(Math.max(a, b), Math.min(a, b))))));
    }
    return eigen.get(key);
  }

  // Return the shares for many columns, which all become known at the same pace.
  function gradualShares(x) {
    const kept = present(x);
    const found = x.map(() => new Float64Array(classes));
    for (let c = 0; c < classes; c++) {
      const z = kept.map((k) => (x[k] - center[k]) / unit[k] - mean[c * size + k]);
      gradualNormalShares(z, eigenOf(of[c], kept)).forEach((share, a) => {
        found[kept[a]][c] = share - (0.5 * Math.log(2 * Math.PI) + Math.log(unit[kept[a]]));
      });
    }
    return found;
  }

  function exactShares(x) {
    const kept = present(x);
    const found = x.map(() => new Float64Array(classes));
    const evidenceOfSome = (known) => {
      const some = x.map(() => NaN);
      kept.forEach((k, a) => (some[k] = known & (1 << a) ? x[k] : NaN));
      return evidenceOf(some);
    };
    shapleyShares(evidenceOfSome, kept.length, classes).forEach((share, a) => (found[kept[a]] = share));
    return found;
  }

  const sharesOf = size > MAX_ENUMERATED ? gradualShares : exactShares;
  return {
    columns,
    read: numbersOf,
    score(row) {
      const x = numbersOf(row);
      return (x.some(Number.isNaN) ? holed : whole)(x);
    },
    shares: (row) => sharesOf(numbersOf(row)),
    evidence: (row) => evidenceOf(numbersOf(row)),
  };
}

// Return a term for a table of the joint values of several columns: counts of tuples of codes, and tables with some
// columns summed over, made on first use.
function tupleTerm(term, columns, { classes }) {
  const { places, sizes } = term;
  const alpha = decodeNumber(term.alpha);
  const codes = term.codes.map(decodeArray);
  const tuples = decodeArray(term.tuples);
  const counts = decodeArray(term.counts);
  const orders = term.orders && decodeArray(term.orders);
  const width = columns.length;
  const rows = tuples.length / width;
  const tables = new Map();

  // Return the counts of the tuples of some columns with the others summed over, the number of possible tuples, and the
  // smoothing.
  function tableOf(kept) {
    const key = kept.join();
    if (!tables.has(key)) {
      const found = new Map();
      for (let t = 0; t < rows; t++) {
        const name = kept.map((k) => tuples[t * width + k]).join();
        if (!found.has(name)) found.set(name, new Float64Array(classes));
        const sums = found.get(name);
        for (let c = 0; c < classes; c++) sums[c] += counts[c * rows + t];
      }
      const total = new Float64Array(classes);
      for (const sums of found.values()) sums.forEach((count, c) => (total[c] += count));
      const possible = kept.reduce((product, k) => product * sizes[k], 1);
      const hidden = sizes.reduce((product, size, k) => (kept.includes(k) ? product : product * size), 1);
      tables.set(key, { found, total, possible, alpha: alpha * hidden });
    }
    return tables.get(key);
  }

  // log((count + alpha) / (sum + alpha * possible));
  // a class without counts and smoothing takes the shares of all classes.
  function logShares({ found, total, possible, alpha: added }, name) {
    const own = found.get(name) || new Float64Array(classes);
    const every = total.reduce((sum, count) => sum + count, 0);
    return own.map((count, c) => {
      const bottom = total[c] + added * possible;
      if (bottom > 0) return Math.log((count + added) / bottom);
      const overall = own.reduce((sum, one) => sum + one, 0);
      return Math.log(every > 0 ? overall / every : 1 / Math.max(possible, 1));
    });
  }

  const codesOf = (row) => places.map((place, k) => codes[k][row.place(place)]);

  function evidenceOf(some) {
    const kept = some.map((_, k) => k).filter((k) => some[k] !== SUMMED_OVER);
    return kept.length ? logShares(tableOf(kept), kept.map((k) => some[k]).join()) : new Float64Array(classes);
  }

  function shares(row) {
    const own = codesOf(row);
    if (orders) {
      const some = (known) => evidenceOf(own.map((code, k) => (known[k] ? code : SUMMED_OVER)));
      return sharesByOrders(some, orders, width, classes);
    }
    const kept = own.map((_, k) => k).filter((k) => own[k] !== SUMMED_OVER);
    const found = columns.map(() => new Float64Array(classes));
    const some = (known) => {
      const members = kept.filter((_, a) => known & (1 << a));
      return evidenceOf(own.map((code, k) => (members.includes(k) ? code : SUMMED_OVER)));
    };
    shapleyShares(some, kept.length, classes).forEach((share, a) => (found[kept[a]] = share));
    return found;
  }

  return { columns, read: codesOf, score: (row) => evidenceOf(codesOf(row)), shares };
}
