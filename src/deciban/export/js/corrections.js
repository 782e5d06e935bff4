// Corrections: small tables of cells, whose values are added to the log joint.

// What is added to the rows of a cell when its value is averaged, so that none is empty.
const ROWS_OF_NO_CELL = 1e-6;

function corrections(encoded, columns, { classes, levels }) {
  const depth = decodedArray(encoded.depth);
  const tests = decodedArray(encoded.tests);
  const contrasts = decodedFixed(encoded.contrasts);
  const rows = decodedFixed(encoded.rows);
  const binned = encoded.columns.map((one) => ({
    column: columns[one.column],
    cuts: one.cuts && decodedArray(one.cuts),
    levels: one.cuts ? null : levels[one.levels],
  }));

  // The bin of each corrected column: 0 is a missing cell, 1 a category that is none of the levels.
  function binsOf(cells) {
    return binned.map(({ column, cuts, levels: set }) => {
      const raw = cells[column.place];
      if (!cuts) {
        const code = set.codeIn(column, raw);
        return code === -1 ? 0 : Math.max(2 + code, 1);
      }
      const x = numberIn(column, raw);
      return Number.isNaN(x) ? 0 : 1 + countUpTo(cuts, x);
    });
  }

  // Call action(first test, first cell, depth, cell of the row, what is unknown of that) for each table. unknown: of each
  // column of the model, whether it says nothing.
  function eachTable(cells, unknown, action) {
    const bins = binsOf(cells);
    const gone = binned.map(({ column }) => unknown[column.place]);
    let test = 0;
    let first = 0;
    for (let t = 0; t < depth.length; t++) {
      let cell = 0;
      let free = 0;
      for (let k = 0; k < depth[t]; k++) {
        const at = 2 * (test + k);
        cell = 2 * cell + (!gone[tests[at]] && bins[tests[at]] > tests[at + 1] ? 1 : 0);
        free = 2 * free + (gone[tests[at]] ? 1 : 0);
      }
      action(test, first, depth[t], cell, free);
      test += depth[t];
      first += 2 ** depth[t];
    }
  }

  // Values of classes from how these differ from the first: their mean is 0.
  function centred(sums) {
    const found = new Float64Array(classes);
    for (let c = 1; c < classes; c++) found[c] = sums[c - 1];
    const mean = found.reduce((sum, value) => sum + value, 0) / classes;
    return found.map((value) => value - mean);
  }

  // What is added to the log joint; a table is averaged over what is unknown of it.
  function totals(cells, unknown) {
    const sums = new Float64Array(classes - 1);
    eachTable(cells, unknown, (_, first, size, cell, free) => {
      if (free === 2 ** size - 1 && free) return;
      let weight = 0;
      const mean = new Float64Array(classes - 1);
      for (let some = free; ; some = (some - 1) & free) {
        const amount = free ? rows[first + cell + some] + ROWS_OF_NO_CELL : 1;
        weight += amount;
        const at = (first + cell + some) * (classes - 1);
        for (let c = 0; c < classes - 1; c++) mean[c] += amount * contrasts[at + c];
        if (!some) break;
      }
      for (let c = 0; c < classes - 1; c++) sums[c] += mean[c] / weight;
    });
    return centred(sums);
  }

  // For a set of tests (bits), the mean of a table over the rows that agree with a cell in these; for no test 0.
  function meansAgreeing(first, size, cell) {
    const cellCount = 2 ** size;
    const weight = new Float64Array(cellCount);
    const sums = Array.from({ length: classes - 1 }, () => new Float64Array(cellCount));
    for (let differs = 0; differs < cellCount; differs++) {
      const at = first + (cell ^ differs);
      weight[differs] = rows[at] + ROWS_OF_NO_CELL;
      for (let c = 0; c < classes - 1; c++) sums[c][differs] = weight[differs] * contrasts[at * (classes - 1) + c];
    }
    for (const values of [weight, ...sums]) {
      for (let bit = 1; bit < cellCount; bit *= 2) {
        for (let set = 0; set < cellCount; set++) if (set & bit) values[set] += values[set ^ bit];
      }
    }
    return (known) => {
      if (known === 0) return new Float64Array(classes - 1);
      const free = cellCount - 1 - known;
      return Float64Array.from(sums, (values) => values[free] / weight[free]);
    };
  }

  // Add the Shapley value of each known column that a table asks of.
  function addShares(test, first, size, cell, free, out) {
    const players = new Map();
    for (let k = 0; k < size; k++) {
      const column = tests[2 * (test + k)];
      const bit = 1 << (size - 1 - k);
      if (!(free & bit)) players.set(column, (players.get(column) || 0) | bit);
    }
    const bits = Array.from(players.values());
    const meanOf = meansAgreeing(first, size, cell);
    const valueOf = (set) => meanOf(bits.reduce((known, bit, p) => (set & (1 << p) ? known | bit : known), 0));
    const found = shapleyShares(valueOf, bits.length, classes - 1);
    Array.from(players.keys()).forEach((column, p) => {
      for (let c = 0; c < classes - 1; c++) out[column][c] += found[p][c];
    });
  }

  function shares(cells, unknown) {
    const out = binned.map(() => new Float64Array(classes - 1));
    eachTable(cells, unknown, (test, first, size, cell, free) => addShares(test, first, size, cell, free, out));
    return out.map(centred);
  }

  return { columns: binned.map((one) => one.column), totals, shares };
}
