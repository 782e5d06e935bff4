// The families of several columns together; `shares` is what each column has of the evidence of the block.

// The code of a value that has the probability of a zero count.
const NEVER_SEEN = 2 ** 31;

function jointNormal(group, columns, { classes }) {
  const names = ["group", "centre", "reach", "whiten", "white_mean", "offset", "unit", "mean", "covariance"];
  const [of, centre, reach, whiten, whiteMean, offset, unit, mean, covariance] = names.map((name) =>
    decodedArray(group[name])
  );
  const varies = decodedArray(group.varies);
  const size = varies.length;
  const half = (size * (size + 1)) / 2;
  const stride = reach.reduce((sum, count) => sum + count, 0);

  // Log densities of a whole row: offset - |whiten (x - centre) - mean|**2.
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
          for (let k = 0; k < reach[m]; k++) sum += whiten[at++] * (x[k] - centre[k]);
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

  // Cholesky's factor of the matrix of the columns that are there, row after row, and the sum of its log diagonal.
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

  // Log densities of the columns that are there: the others are integrated out.
  function holed(x) {
    const kept = Array.from(varies.keys()).filter((k) => !Number.isNaN(x[k]));
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
        let sum = (x[k] - centre[k]) / unit[k] - mean[c * size + k];
        for (let b = 0; b < a; b++) sum -= made.root[a][b] * white[b];
        white[a] = sum / made.root[a][a];
        distance += white[a] * white[a];
      });
      found[c] = constant - made.logRoot - 0.5 * (Number.isNaN(distance) ? Infinity : distance);
    }
    return found;
  }

  function numbersOf(cells) {
    const numbers = columns.map((column) => finiteNumberIn(column, cells[column.place]));
    return Array.from(varies, (k) => numbers[k]);
  }

  // Log densities with what is the same for every class, which `whole` may leave out.
  function evidenceOf(x) {
    return reach.length < size || x.some(Number.isNaN) ? holed(x) : whole(x);
  }

  const eigen = new Map();

  // The eigenvectors of a matrix of some columns; the last ones that were asked for are kept.
  function eigenOf(g, kept) {
    const key = `${g}:${kept.join()}`;
    if (!eigen.has(key)) {
      if (eigen.size >= MOST_KEPT) eigen.clear();
      const at = (a, b) => covariance[g * half + (a * (a + 1)) / 2 + b];
      eigen.set(key, eigenvectors(kept.map((a) => kept.map((b) => at(Math.max(a, b), Math.min(a, b))))));
    }
    return eigen.get(key);
  }

  // Of many columns: all become known at the same pace.
  function gradualShares(x) {
    const kept = Array.from(varies.keys()).filter((k) => !Number.isNaN(x[k]));
    const found = x.map(() => new Float64Array(classes));
    for (let c = 0; c < classes; c++) {
      const z = kept.map((k) => (x[k] - centre[k]) / unit[k] - mean[c * size + k]);
      gradualNormalShares(z, eigenOf(of[c], kept)).forEach((share, a) => {
        found[kept[a]][c] = share - (0.5 * Math.log(2 * Math.PI) + Math.log(unit[kept[a]]));
      });
    }
    return found;
  }

  function exactShares(x) {
    const kept = Array.from(varies.keys()).filter((k) => !Number.isNaN(x[k]));
    const found = x.map(() => new Float64Array(classes));
    const evidenceOfSome = (known) => {
      const some = x.map(() => NaN);
      kept.forEach((k, a) => (some[k] = known & (1 << a) ? x[k] : NaN));
      return evidenceOf(some);
    };
    shapleyShares(evidenceOfSome, kept.length, classes).forEach((share, a) => (found[kept[a]] = share));
    return found;
  }

  return {
    evidence: (cells) => (size ? evidenceOf(numbersOf(cells)) : new Float64Array(classes)),
    shares(cells) {
      const found = columns.map(() => new Float64Array(classes));
      const some = (size > MOST_ENUMERATED ? gradualShares : exactShares)(numbersOf(cells));
      varies.forEach((k, a) => (found[k] = some[a]));
      return found;
    },
    score(cells, weights, slots, out) {
      const x = numbersOf(cells);
      if (weights[0] === 0 || !size) return;
      const found = (x.some(Number.isNaN) ? holed : whole)(x);
      for (let c = 0; c < classes; c++) out[slots[0]][c] += weights[0] * found[c];
    },
  };
}

function jointTable(group, columns, { classes, levels }) {
  const sets = group.levels.map((place) => levels[place]);
  const sizes = sets.map((set) => set.values.length);
  const cuts = group.cuts.map((some) => some && decodedArray(some));
  const tuples = decodedArray(group.tuples);
  const counts = decodedArray(group.counts);
  const width = columns.length;
  const rows = tuples.length / width;
  const tables = new Map();

  function codeOf(column, raw, k) {
    if (!cuts[k]) return sets[k].codeIn(column, raw);
    const x = numberIn(column, raw);
    return Number.isNaN(x) ? -1 : sets[k].codeIn({ name: column.name, readAs: "as it is" }, countUpTo(cuts[k], x));
  }

  // The counts of the tuples of some columns, the others summed over; the rest is as in TupleTable.
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
      tables.set(key, { found, total, possible, alpha: group.alpha * hidden });
    }
    return tables.get(key);
  }

  // log((count + alpha) / (sum + alpha * possible)); a class without counts and smoothing takes the shares of all.
  function logShares({ found, total, possible, alpha }, name) {
    const own = found.get(name) || new Float64Array(classes);
    const every = total.reduce((sum, count) => sum + count, 0);
    return own.map((count, c) => {
      const bottom = total[c] + alpha * possible;
      if (bottom > 0) return Math.log((count + alpha) / bottom);
      const overall = own.reduce((sum, one) => sum + one, 0);
      return Math.log(every > 0 ? overall / every : 1 / Math.max(possible, 1));
    });
  }

  // The codes of the members, -1 where one is to be summed over.
  function codesOf(cells) {
    return columns.map((column, k) => {
      const code = codeOf(column, cells[column.place], k);
      if (code !== -2) return code;
      return unseenCode(group.unseen, column, shown(cells[column.place]), "never seen in training", NEVER_SEEN);
    });
  }

  function evidenceOf(codes) {
    const kept = codes.map((_, k) => k).filter((k) => codes[k] !== -1);
    return kept.length ? logShares(tableOf(kept), kept.map((k) => codes[k]).join()) : new Float64Array(classes);
  }

  return {
    shares(cells) {
      const codes = codesOf(cells);
      if (group.orders) {
        const some = (known) => evidenceOf(codes.map((code, k) => (known[k] ? code : -1)));
        return sharesByOrders(some, decodedArray(group.orders), width, classes);
      }
      const kept = codes.map((_, k) => k).filter((k) => codes[k] !== -1);
      const found = columns.map(() => new Float64Array(classes));
      const some = (known) => {
        const members = kept.filter((_, a) => known & (1 << a));
        return evidenceOf(codes.map((code, k) => (members.includes(k) ? code : -1)));
      };
      shapleyShares(some, kept.length, classes).forEach((share, a) => (found[kept[a]] = share));
      return found;
    },
    score(cells, weights, slots, out) {
      const codes = codesOf(cells);
      if (weights[0] === 0) return;
      const found = evidenceOf(codes);
      for (let c = 0; c < classes; c++) out[slots[0]][c] += weights[0] * found[c];
    },
  };
}
