// A fitted model that scores rows: decibanScorer(model), given the model's JSON.

const SCORERS = {
  categorical,
  binned,
  bernoulli,
  linear,
  normal,
  "log normal": logNormal,
  gamma,
  poisson,
  "joint normal": jointNormal,
  "joint table": jointTable,
  text: texts,
};

// Evidence beyond this for every class leaves too few digits to what is added to it.
const VAST_EVIDENCE = 1e6;
const LEAST_EXPONENT = -746;

function largest(values) {
  return values.reduce((most, value) => Math.max(most, value), -Infinity);
}

// The scale at a share of the evidence, between those that are given: [share, scale], rising.
function interpolated(share, scales) {
  for (let k = 1; k < scales.length; k++) {
    const [[low, before], [high, after]] = [scales[k - 1], scales[k]];
    if (share <= high) return before + ((after - before) * (share - low)) / (high - low);
  }
  return scales[scales.length - 1][1];
}

function decibanScorer(model) {
  if (model.format !== "deciban model" || model.version !== 1) {
    throw new Error(`this is ${model.format} ${model.version}, expected deciban model 1; export the model again`);
  }
  const labels = model.classes.labels.map((label) =>
    model.classes.type === "integer" && typeof label === "string" ? BigInt(label) : label
  );
  const classes = labels.length;
  const levels = model.levels.map(levelSet);
  const columns = model.columns.map(({ name, kind, read_as: readAs, levels: place }, k) => ({
    ...{ name, kind, readAs, place: k },
    levels: place === undefined ? undefined : levels[place].values,
  }));
  const places = new Map(columns.map((column) => [column.name, column.place]));
  const characters = characterTables(model.characters);
  const context = { classes, levels, characters };
  const groups = model.groups.map((group) => ({
    ...SCORERS[group.scorer](group, group.columns.map((column) => columns[column]), context),
    blocks: group.blocks,
    places: group.columns,
    shared: group.blocks.map(() => 0),
    weights: group.blocks.map((block) => decodedNumber(model.blocks[block].weight)),
  }));
  const blockWeights = model.blocks.map((block) => decodedNumber(block.weight));
  const logPrior = model.log_prior.map(decodedNumber);
  const partial = model.partial && {
    ...model.partial,
    offsets: decodedArray(model.partial.offsets),
    shares: decodedArray(model.partial.shares),
    informative: decodedArray(model.partial.informative),
  };
  const cap = decodedNumber(model.cap);
  const corrected = model.corrections && corrections(model.corrections, columns, context);

  // The cells of a row in the order of the columns.
  function cellsOf(row) {
    if (row === null || typeof row !== "object") throw new Error("a row is an object: {column: value, ...}");
    const cells = new Array(columns.length).fill(null);
    const names = Object.keys(row);
    let known = names.length === 0;
    for (const name of names) {
      if (!places.has(name)) continue;
      known = true;
      cells[places.get(name)] = row[name];
    }
    if (!known) throw new Error(`none of the model's columns is in the row: it has ${names.slice(0, 12).join(", ")}`);
    return cells;
  }

  const offsetOf = (place) => partial.offsets.slice(place * classes, (place + 1) * classes);

  // What is known of a row: the columns that say nothing, the bias of the others, and what the sum is scaled by.
  function knownOf(cells) {
    const known = { unknown: cells.map(() => false), bias: new Float64Array(classes), scale: 1 };
    if (!partial) return known;
    let share = 0;
    columns.forEach((column, place) => {
      if (column.kind === "unused") return;
      known.unknown[place] = learnedCell(column, cells[place]) === null;
      if (!known.unknown[place]) share += partial.shares[place];
    });
    if (known.unknown.some((gone) => gone)) {
      known.scale = interpolated(share, partial.scales);
      for (const place of partial.informative) known.unknown[place] = known.unknown[place] && share < partial.least;
    }
    known.unknown.forEach((gone, place) => {
      if (!gone) offsetOf(place).forEach((value, c) => (known.bias[c] += value));
    });
    return known;
  }

  const zeros = (count) => Array.from({ length: count }, () => new Float64Array(classes));

  // Whether a block is worth more than the cap, or so much for every class that others would be rounded away.
  function isBeyond(weighted, block) {
    if (cap === Infinity || model.blocks[block].words) return false;
    const top = largest(weighted);
    return !weighted.every((value) => value >= top - cap) || top < -VAST_EVIDENCE;
  }

  // Weighted evidence, relative to the best class and no further below it than the cap.
  function capped(weighted) {
    const top = largest(weighted);
    return weighted.map((value) => (top === -Infinity ? 0 : Math.max(value - top, -cap)));
  }

  function jointOf(cells) {
    const { unknown, bias, scale } = knownOf(cells);
    const joint = Float64Array.from(bias);
    if (cap === Infinity) {
      for (const group of groups) group.score(cells, group.weights, group.shared, [joint]);
    } else {
      const apart = zeros(model.blocks.length);
      for (const group of groups) group.score(cells, group.weights, group.blocks, apart);
      apart.forEach((weighted, b) => {
        const limited = isBeyond(weighted, b) ? capped(weighted) : weighted;
        for (let c = 0; c < classes; c++) joint[c] += limited[c];
      });
    }
    if (corrected) corrected.totals(cells, unknown).forEach((value, c) => (joint[c] += value));
    return joint.map((value, c) => logPrior[c] + scale * value);
  }

  // The posterior and its logarithm; where every class has probability 0, those of the prior.
  function normalized(joint) {
    const top = largest(joint);
    if (top === -Infinity) return { logs: logPrior.slice(), shares: logPrior.map(Math.exp) };
    const shares = Array.from(joint, (value) => (value - top < LEAST_EXPONENT ? 0 : Math.exp(value - top)));
    const total = shares.reduce((sum, share) => sum + share, 0);
    const logTotal = Math.log(total);
    return { logs: Array.from(joint, (value) => value - top - logTotal), shares: shares.map((share) => share / total) };
  }

  function firstBest(values) {
    return values.indexOf(largest(values));
  }

  // The evidence of each block; where a correction has a share in the log joint, that of each column behind; last the
  // bias, the sum of the offsets of the known columns. All are scaled where cells are missing.
  function evidenceOf(cells) {
    const apart = zeros(model.blocks.length);
    for (const group of groups) group.score(cells, group.blocks.map(() => 1), group.blocks, apart);
    const found = apart.map((values, b) => {
      const block = model.blocks[b];
      const weight = blockWeights[b] > 0 ? blockWeights[b] : 1;
      const weighted = values.map((value) => weight * value);
      const beyond = isBeyond(weighted, b);
      return {
        name: block.name,
        columns: block.columns.map((column) => columns[column].name),
        weight: blockWeights[b],
        values: Array.from(beyond ? capped(weighted).map((value) => value / weight) : values),
        capped: beyond,
      };
    });
    const { unknown, bias, scale } = knownOf(cells);
    const shares = corrected ? corrected.shares(cells, unknown) : [];
    shares.forEach((values, k) => {
      const { name } = corrected.columns[k];
      found.push({ name: `correction of ${name}`, columns: [name], weight: 1, values: Array.from(values), capped: false });
    });
    if (partial) found.push({ name: "bias", columns: [], weight: 1, values: Array.from(bias), capped: false });
    return found.map((block) => ({ ...block, values: block.values.map((value) => scale * value) }));
  }

  // What the columns of a joint block have of its evidence, before its weight.
  function sharedOut(group, cells, { values, weight, capped: limited }, scale) {
    const scaled = (some) => Array.from(some, (value) => scale * value);
    const evidence = limited || !group.evidence ? values : scaled(group.evidence(cells));
    const shares = settled(group.shares(cells).map(scaled), Array.from(evidence), limited);
    return shares.map((share) => share.map((value) => weight * value));
  }

  // The evidence of each column: its own, its share of each joint block it is in, and its correction.
  function columnEvidenceOf(cells) {
    const [alone, together, correction] = [zeros(columns.length), zeros(columns.length), zeros(columns.length)];
    const add = (out, place, values) => values.forEach((value, c) => (out[place][c] += value));
    const blocks = evidenceOf(cells);
    const { unknown, scale } = knownOf(cells);
    if (partial) {
      columns.forEach((_, place) => {
        if (!unknown[place]) add(alone, place, offsetOf(place).map((value) => scale * value));
      });
    }
    for (const group of groups) {
      if (group.shares && group.places.length > 1) {
        const block = blocks[group.blocks[0]];
        if (!(block.weight > 0)) continue;
        sharedOut(group, cells, block, scale).forEach((share, k) => add(together, group.places[k], share));
        continue;
      }
      group.blocks.forEach((b, k) => {
        const { weight, values } = blocks[b];
        if (weight > 0) add(alone, group.places[k], values.map((value) => weight * value));
      });
    }
    (corrected ? corrected.columns : []).forEach(({ place }, k) => {
      add(correction, place, blocks[model.blocks.length + k].values);
    });
    return columns.map(({ name }, j) => ({
      name,
      values: Array.from(alone[j], (value, c) => value + together[j][c] + correction[j][c]),
      alone: Array.from(alone[j]),
      together: Array.from(together[j]),
      correction: Array.from(correction[j]),
    }));
  }

  return {
    columns: columns.map(({ name, kind, levels: known }) => (known ? { name, kind, levels: known } : { name, kind })),
    classes: labels,
    logPrior,
    logJoint: (row) => Array.from(jointOf(cellsOf(row))),
    logProba: (row) => normalized(jointOf(cellsOf(row))).logs,
    proba: (row) => normalized(jointOf(cellsOf(row))).shares,
    predict(row) {
      const joint = jointOf(cellsOf(row));
      return labels[firstBest(largest(joint) === -Infinity ? logPrior : Array.from(joint))];
    },
    evidence: (row) => evidenceOf(cellsOf(row)),
    columnEvidence: (row) => columnEvidenceOf(cellsOf(row)),
  };
}
