// Scorer of rows: decibanScorer(model), given the model's JSON.

const TERMS = {
  LookupTerm: lookupTerm,
  NormalTerm: normalTerm,
  HalfLineTerm: halfLineTerm,
  NarrowGammaTerm: narrowGammaTerm,
  LinearTerm: linearTerm,
  JointNormalTerm: jointNormalTerm,
  TupleTerm: tupleTerm,
  TextTerm: textTerm,
};

// Evidence below minus this for every class leaves too few digits for the other blocks.
const VAST_EVIDENCE = 1e6;

// Math.exp() of smaller numbers is 0.
const MIN_EXPONENT = -746;

// Cumulative probability that makes a class the median.
const MIN_HALF = 0.5 - 1e-9;

// Return the scale at a share of the evidence, interpolated between increasing [share, scale] pairs.
function interpolate(share, scales) {
  for (let k = 1; k < scales.length; k++) {
    const [[low, before], [high, after]] = [scales[k - 1], scales[k]];
    if (share <= high) return before + ((after - before) * (share - low)) / (high - low);
  }
  return scales[scales.length - 1][1];
}

// Weight added to each cell of a table when its values are averaged, so that no cell is empty.
const CELL_PRIOR_WEIGHT = 1e-6;

// The cells of a row in all tables are bytes. Each column contributes its answers to the questions of all tables at once,
// as the binary digits of these cells, four tables per word.
function tableCorrections(encoded, places, classes) {
  const depth = decodeArray(encoded.depth);
  const tests = decodeArray(encoded.tests);
  const contrasts = Int32Array.from(decodeArray(encoded.contrasts));
  const rows = decodeArray(encoded.rows);
  const { unit } = encoded;
  const columns = encoded.places.map((place) => places[place].column);
  const width = Math.ceil(depth.length / 4);
  const starts = new Int32Array(depth.length); // first cell of each table
  for (let t = 1; t < depth.length; t++) starts[t] = starts[t - 1] + 2 ** depth[t - 1];
  const { answers, digits } = encodeQuestions();
  const [cells, frees] = [new Uint32Array(width), new Uint32Array(width)];
  const [cellOf, freeOf] = [new Uint8Array(cells.buffer), new Uint8Array(frees.buffer)];

  // Return the answers of each place of each column, and the digits that each column determines.
  function encodeQuestions() {
    const sizes = encoded.places.map((place) => places[place].size);
    const found = sizes.map((size) => new Uint32Array(size * width));
    const asked = sizes.map(() => new Uint32Array(width));
    let test = 0;
    depth.forEach((size, t) => {
      for (let k = 0; k < size; k++, test++) {
        const [column, cut] = [tests[2 * test], tests[2 * test + 1]];
        const bit = 1 << (size - 1 - k);
        const bytes = new Uint8Array(found[column].buffer);
        for (let place = Math.max(cut + 1, 0); place < sizes[column]; place++) bytes[4 * width * place + t] |= bit;
        new Uint8Array(asked[column].buffer)[t] |= bit;
      }
    });
    return { answers: found, digits: asked };
  }

  // Find the cell of a row in each table (cellOf), and its unknown digits (freeOf); return true if there are any.
  // unknown: flags of the model's columns without evidence.
  function findCells(row, unknown) {
    let partial = false;
    cells.fill(0);
    frees.fill(0);
    for (let k = 0; k < columns.length; k++) {
      const gone = unknown[columns[k].number];
      const [to, from] = gone ? [frees, digits[k]] : [cells, answers[k]];
      const at = gone ? 0 : width * row.place(encoded.places[k]);
      partial = partial || gone;
      for (let w = 0; w < width; w++) to[w] |= from[at + w];
    }
    return partial;
  }

  // Return class values with mean 0, from their differences to the first class.
  function center(sums) {
    const found = new Float64Array(classes);
    for (let c = 1; c < classes; c++) found[c] = sums[c - 1];
    const mean = found.reduce((sum, value) => sum + value, 0) / classes;
    return found.map((value) => value - mean);
  }

  // Return the correction of each class; tables are averaged over unknown columns.
  function totals(row, unknown) {
    const partial = findCells(row, unknown);
    const sums = new Float64Array(classes - 1);
    for (let t = 0; t < depth.length; t++) {
      const free = partial ? freeOf[t] : 0;
      if (free) addMean(starts[t] + cellOf[t], free, 2 ** depth[t] - 1, sums);
      else {
        const at = (starts[t] + cellOf[t]) * (classes - 1);
        for (let c = 0; c < classes - 1; c++) sums[c] += contrasts[at + c];
      }
    }
    return center(sums.map((value) => unit * value));
  }

  // Add the mean of the cells that differ only in the free digits; 0 if all digits are free.
  function addMean(cell, free, all, sums) {
    if (free === all) return;
    let weight = 0;
    const mean = new Float64Array(classes - 1);
    for (let some = free; ; some = (some - 1) & free) {
      const amount = rows[cell + some] + CELL_PRIOR_WEIGHT;
      weight += amount;
      const at = (cell + some) * (classes - 1);
      for (let c = 0; c < classes - 1; c++) mean[c] += amount * contrasts[at + c];
      if (!some) break;
    }
    for (let c = 0; c < classes - 1; c++) sums[c] += mean[c] / weight;
  }

  // Return a function from a set of tests (bits) to the mean of a table over the rows that agree with a cell in these
  // tests; 0 for the empty set.
  function conditionalMeans(first, size, cell) {
    const cellCount = 2 ** size;
    const weight = new Float64Array(cellCount);
    const sums = Array.from({ length: classes - 1 }, () => new Float64Array(cellCount));
    for (let differs = 0; differs < cellCount; differs++) {
      const at = first + (cell ^ differs);
      weight[differs] = rows[at] + CELL_PRIOR_WEIGHT;
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

  // Add the Shapley value of each known column of a table.
  function addShares(test, first, size, cell, free, out) {
    const players = new Map();
    for (let k = 0; k < size; k++) {
      const column = tests[2 * (test + k)];
      const bit = 1 << (size - 1 - k);
      if (!(free & bit)) players.set(column, (players.get(column) || 0) | bit);
    }
    const bits = Array.from(players.values());
    const meanOf = conditionalMeans(first, size, cell);
    const valueOf = (set) => meanOf(bits.reduce((known, bit, p) => (set & (1 << p) ? known | bit : known), 0));
    const found = shapleyShares(valueOf, bits.length, classes - 1);
    Array.from(players.keys()).forEach((column, p) => {
      for (let c = 0; c < classes - 1; c++) out[column][c] += found[p][c];
    });
  }

  function shares(row, unknown) {
    const out = columns.map(() => new Float64Array(classes - 1));
    findCells(row, unknown);
    let test = 0;
    for (let t = 0; t < depth.length; t++) {
      addShares(test, starts[t], depth[t], cellOf[t], freeOf[t], out);
      test += depth[t];
    }
    return out.map((sums) => center(sums.map((value) => unit * value)));
  }

  return { columns, totals, shares };
}

// Columns that form one block of evidence: terms that add up, their weight, and their cap.
class Block {
  constructor(block, columns, context) {
    this.name = block.name;
    this.classes = context.classes;
    this.columns = block.columns.map((number) => columns[number]);
    this.weight = decodeNumber(block.weight);
    this.cap = decodeNumber(block.cap);
    this.terms = block.terms.map((term) => TERMS[term.term](term, term.columns.map((number) => columns[number]), context));
  }

  // Read the cells, which may throw an error.
  read(row) {
    for (const term of this.terms) term.read(row);
  }

  // Return the evidence of a row for each class, without weight and cap.
  score(row) {
    const total = new Float64Array(this.classes);
    for (const term of this.terms) addTo(total, 1, term.score(row) || []);
    return total;
  }

  // Return true if the evidence exceeds the cap, or is so large for every class that other blocks would be rounded away.
  isBeyond(weighted) {
    if (this.cap === Infinity) return false;
    const top = largest(weighted);
    return !weighted.every((value) => value >= top - this.cap) || top < -VAST_EVIDENCE;
  }

  // Return weighted evidence relative to the best class, limited by the cap.
  capEvidence(weighted) {
    const top = largest(weighted);
    return weighted.map((value) => (top === -Infinity ? 0 : Math.max(value - top, -this.cap)));
  }

  // Return the evidence of a row for display.
  evidence(row) {
    const scale = this.weight > 0 ? this.weight : 1;
    const values = this.score(row);
    const weighted = values.map((value) => scale * value);
    const beyond = this.isBeyond(weighted);
    return {
      name: this.name,
      columns: this.columns.map((column) => column.name),
      weight: this.weight,
      values: Array.from(beyond ? this.capEvidence(weighted).map((value) => value / scale) : values),
      capped: beyond,
    };
  }

  // Return the share of each column in the weighted evidence; empty without weight.
  shares(row, { values, capped: limited }, scale) {
    if (!(this.weight > 0)) return [];
    let evidence = values;
    const found = new Map(this.columns.map((column) => [column.number, new Float64Array(this.classes)]));
    for (const term of this.terms) {
      const own = term.shares ? term.shares(row) : [term.score(row)];
      term.columns.forEach((column, k) => addTo(found.get(column.number), scale, own[k] || []));
      if (term.evidence && !limited) evidence = Array.from(term.evidence(row), (value) => scale * value);
    }
    const shares = adjustShares(Array.from(this.columns, (column) => found.get(column.number)), evidence, limited);
    return shares.map((share) => share.map((value) => this.weight * value));
  }
}

function decibanScorer(model) {
  if (model.format !== "deciban model" || model.version !== 2) {
    const found = `${model.format} ${model.version}`;
    throw new Error(`unsupported format '${found}', expected 'deciban model 2'; export the model again`);
  }
  const labels = model.classes.labels.map((label) =>
    model.classes.type === "integer" && typeof label === "string" ? BigInt(label) : label
  );
  const classes = labels.length;
  const columns = model.columns.map(({ name, kind, read_as: readAs, levels: set }, number) => {
    const { type, values } = set === undefined ? {} : model.sets[set];
    return { name, kind, readAs, number, levels: values && values.map((value) => displayLevel(type, value)) };
  });
  const numbers = new Map(columns.map((column) => [column.name, column.number]));
  const places = model.places.map(([column, set]) => {
    const { type, values } = model.sets[set];
    if (type === "cuts") return cutPlace(columns[column], decodeArray(values));
    return levelPlace(columns[column], model.sets[set]);
  });
  const refusals = model.refusals.map((one) => ({
    ...one,
    places: decodeArray(one.places),
    rejected: new Set(decodeArray(one.rejected)),
  }));
  const context = { classes, characters: characterTables(model.characters) };
  const blocks = model.blocks.map((block) => new Block(block, columns, context));
  const logPrior = model.log_prior.map(decodeNumber);
  const limit = decodeNumber(model.limit);
  const partial = model.partial && {
    ...model.partial,
    offsets: decodeArray(model.partial.offsets),
    shares: decodeArray(model.partial.shares),
    informative: decodeArray(model.partial.informative),
  };
  const corrected = model.corrections && tableCorrections(model.corrections, places, classes);

  // Return the cells of a row in the order of the columns.
  function rowOf(row) {
    if (row === null || typeof row !== "object") throw new Error("expected a row as {column: value, ...}");
    const cells = new Array(columns.length).fill(null);
    const names = Object.keys(row);
    let known = names.length === 0;
    for (const name of names) {
      if (!numbers.has(name)) continue;
      known = true;
      cells[numbers.get(name)] = row[name];
    }
    if (!known) throw new Error(`the row has none of the model's columns; it has ${names.slice(0, 12).join(", ")}`);
    return new Row(cells, places);
  }

  // Throw an error for a cell that cannot be scored; `every` includes blocks without weight.
  function reject(row, every) {
    for (const { places: some, rejected, expected, never, blocks: weighted } of refusals) {
      some.forEach((place, k) => {
        if (!rejected.has(row.place(place))) return;
        if (!every && weighted && blocks[weighted[k]].weight === 0) return;
        const { column } = places[place];
        const cell = places[place].display(row);
        if (expected) throw typeError(column, cell, expected);
        throw badCell(column, `found ${displayCell(cell)}, ${never}`, "or fit with unseen='ignore'");
      });
    }
  }

  const offsetOf = (number) => partial.offsets.slice(number * classes, (number + 1) * classes);

  // Return the unknown columns of a row, the bias of the others, and the scale of the sum.
  function adjustForMissing(row) {
    const known = { unknown: columns.map(() => false), bias: new Float64Array(classes), scale: 1 };
    if (!partial) return known;
    let share = 0;
    for (const column of columns) {
      if (column.kind === "unused") continue;
      known.unknown[column.number] = row.cell(column) === null;
      if (!known.unknown[column.number]) share += partial.shares[column.number];
    }
    if (known.unknown.some((gone) => gone)) {
      known.scale = interpolate(share, partial.scales);
      for (const number of partial.informative) known.unknown[number] = known.unknown[number] && share < partial.least;
    }
    known.unknown.forEach((gone, number) => {
      if (!gone) addTo(known.bias, 1, offsetOf(number));
    });
    return known;
  }

  function jointOf(row) {
    reject(row, false);
    const { unknown, bias, scale } = adjustForMissing(row);
    const joint = Float64Array.from(bias);
    for (const block of blocks) {
      if (block.weight === 0) {
        block.read(row);
        continue;
      }
      const weighted = block.score(row).map((value) => block.weight * value);
      addTo(joint, 1, block.isBeyond(weighted) ? block.capEvidence(weighted) : weighted);
    }
    if (corrected) addTo(joint, 1, corrected.totals(row, unknown));
    return raised(joint.map((value) => scale * value)).map((value, c) => logPrior[c] + value);
  }

  // Return the evidence of each class raised to the limit below the best one; a class of probability 0 keeps it.
  function raised(total) {
    const least = largest(total) - limit;
    return total.map((value) => (value > -Infinity && value < least ? least : value));
  }

  // Return the posterior and its logarithm; those of the prior if every class has probability 0.
  function normalize(joint) {
    const top = largest(joint);
    if (top === -Infinity) return { logs: logPrior.slice(), shares: logPrior.map(Math.exp) };
    const shares = Array.from(joint, (value) => (value - top < MIN_EXPONENT ? 0 : Math.exp(value - top)));
    const total = shares.reduce((sum, share) => sum + share, 0);
    const logTotal = Math.log(total);
    return { logs: Array.from(joint, (value) => value - top - logTotal), shares: shares.map((share) => share / total) };
  }

  function firstBest(values) {
    return values.indexOf(largest(values));
  }

  // Return the index of the posterior median of ordered classes.
  function median(shares) {
    let total = 0;
    return model.order.find((place) => (total += shares[place]) >= MIN_HALF);
  }

  // Return the evidence of each block, followed by the correction of each corrected column, by the sum of the offsets of
  // the known columns, and, if it changes the row, by what the limit adds. All values are scaled if cells are missing.
  function evidenceOf(row) {
    reject(row, true);
    const found = blocks.map((block) => block.evidence(row));
    const { unknown, bias, scale } = adjustForMissing(row);
    const shares = corrected ? corrected.shares(row, unknown) : [];
    shares.forEach((values, k) => {
      const { name } = corrected.columns[k];
      found.push({ name: `correction of ${name}`, columns: [name], weight: 1, values: Array.from(values), capped: false });
    });
    if (partial) found.push({ name: "offsets", columns: [], weight: 1, values: Array.from(bias), capped: false });
    const scaled = found.map((block) => ({ ...block, values: block.values.map((value) => scale * value) }));
    const total = new Float64Array(classes);
    for (const { weight, values } of scaled) if (weight > 0) addTo(total, weight, values);
    const added = Array.from(raised(total), (value, c) => (value > total[c] ? value - total[c] : 0));
    if (added.some((value) => value > 0)) {
      scaled.push({ name: "limit", columns: [], weight: 1, values: added, capped: false });
    }
    return scaled;
  }

  // Return the evidence of each column: its own, its shares of joint blocks, and its correction. If the limit changes the
  // row, it follows.
  function columnEvidenceOf(row) {
    const zeros = () => columns.map(() => new Float64Array(classes));
    const [own, joint, correction] = [zeros(), zeros(), zeros()];
    const evidence = evidenceOf(row);
    const { unknown, scale } = adjustForMissing(row);
    if (partial) {
      columns.forEach((_, number) => {
        if (!unknown[number]) addTo(own[number], scale, offsetOf(number));
      });
    }
    blocks.forEach((block, b) => {
      if (block.columns.length > 1) {
        const shares = block.shares(row, evidence[b], scale);
        shares.forEach((share, k) => addTo(joint[block.columns[k].number], 1, share));
      } else if (block.weight > 0) addTo(own[block.columns[0].number], block.weight, evidence[b].values);
    });
    (corrected ? corrected.columns : []).forEach(({ number }, k) => {
      addTo(correction[number], 1, evidence[blocks.length + k].values);
    });
    const found = columns.map(({ name }, j) => ({
      name,
      values: Array.from(own[j], (value, c) => value + joint[j][c] + correction[j][c]),
      own: Array.from(own[j]),
      joint: Array.from(joint[j]),
      correction: Array.from(correction[j]),
    }));
    const [last] = evidence.slice(-1);
    if (last && last.name === "limit" && last.columns.length === 0) {
      const nothing = labels.map(() => 0);
      found.push({ name: "limit", values: last.values, own: last.values, joint: nothing, correction: nothing });
    }
    return found;
  }

  return {
    columns: columns.map(({ name, kind, levels: known }) => (known ? { name, kind, levels: known } : { name, kind })),
    classes: labels,
    logPrior,
    predictJointLogProba: (row) => Array.from(jointOf(rowOf(row))),
    predictLogProba: (row) => normalize(jointOf(rowOf(row))).logs,
    predictProba: (row) => normalize(jointOf(rowOf(row))).shares,
    predict(row) {
      const joint = jointOf(rowOf(row));
      if (model.order) return labels[median(normalize(joint).shares)];
      return labels[firstBest(largest(joint) === -Infinity ? logPrior : Array.from(joint))];
    },
    evidence: (row) => evidenceOf(rowOf(row)),
    columnEvidence: (row) => columnEvidenceOf(rowOf(row)),
  };
}
