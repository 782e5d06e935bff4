// What each column of a block has of its evidence: Shapley values, and what stands for them where columns are many.

// Columns, all sets of which are looked at.
const MOST_ENUMERATED = 10;

// Decompositions of matrices that are kept, of different sets of columns that are there.
const MOST_KEPT = 64;

// The Shapley value of each player; valueOf(set of players, as bits) has a value for each class.
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

// The weight in a Shapley value of a set of so many others, among so many players.
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

// What a value gains; nothing where it was -Infinity already.
function gain(before, after) {
  return before > -Infinity ? after - before : 0;
}

// The mean of what each player adds to those before it, in some orders.
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

// The eigenvalues and eigenvectors (axes[row][k] is of value k) of a symmetric matrix, by Jacobi's rotations.
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

// (log a - log b) / (a - b), 1 / a where they are equal.
function inverseLogarithmicMean(a, b) {
  const ratio = a / b - 1;
  return (Math.abs(ratio) < 1e-8 ? 1 - ratio / 2 : Math.log1p(ratio) / ratio) / b;
}

// What each column has of the log density at z of a normal distribution of mean 0, without -log(2 pi)/2 of each.
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

// Shares (column by class) as shares of the evidence that a block has in the end: where a cap limited it, they are
// relative to the best class too; what is left over by rounding goes to the columns by the size of their shares.
function settled(shares, evidence, limited) {
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
