// Tokenization of texts as in Python, and the evidence of their words.

const SIGMA = 0x3a3;
const FINAL_SIGMA = 0x3c2;
const SMALL_SIGMA = 0x3c3;
const CASED = /\p{Cased}/u;
const CASE_IGNORABLE = /\p{Case_Ignorable}/u;

function characterTables(encoded) {
  const small = new Map();
  for (const [first, count, step, change] of encoded.small ? encoded.small.single : []) {
    for (let k = 0; k < count; k++) small.set(first + k * step, [first + k * step + change]);
  }
  for (const text of encoded.small ? encoded.small.several : []) {
    const [capital, ...becomes] = Array.from(text, (one) => one.codePointAt(0));
    small.set(capital, becomes);
  }
  const set = (runs) => (runs ? pointSet(runs) : () => false);
  const accents = encoded.accents || {};
  return {
    small,
    isLetter: set(encoded.letters),
    isSpace: set(encoded.spaces),
    isComposed: set(accents.composed),
    isMark: set(accents.marks),
  };
}

// Convert capital sigmas, which have another lower case at the end of a word.
function withoutSigma(points) {
  return points.map((point, i) => {
    if (point !== SIGMA) return point;
    const near = (step) => {
      let j = i + step;
      while (j >= 0 && j < points.length && CASE_IGNORABLE.test(String.fromCodePoint(points[j]))) j += step;
      return j >= 0 && j < points.length && CASED.test(String.fromCodePoint(points[j]));
    };
    return near(-1) && !near(1) ? FINAL_SIGMA : SMALL_SIGMA;
  });
}

// Return the code points of a text in lower case and without accents.
function foldPoints(text, tokens, tables) {
  let points = Array.from(text, (one) => one.codePointAt(0));
  if (tokens.lowercase && points.includes(SIGMA)) points = withoutSigma(points);
  if (tokens.lowercase) points = points.flatMap((point) => tables.small.get(point) || point);
  if (!tokens.strip_accents) return points;
  return points.flatMap((point) => {
    if (tables.isMark(point)) return [];
    if (!tables.isComposed(point)) return point;
    const parts = Array.from(String.fromCodePoint(point).normalize("NFKD"), (one) => one.codePointAt(0));
    return parts.filter((part) => !tables.isMark(part));
  });
}

function wordsOf(points, tokens, tables, stop) {
  const found = [];
  let word = [];
  for (const point of [...points, 0]) {
    if (tables.isLetter(point)) {
      word.push(point);
      continue;
    }
    if (word.length >= tokens.min_word_length) {
      const text = textOf(word);
      if (!stop.has(text)) found.push(text);
    }
    word = [];
  }
  return found;
}

function textOf(points) {
  let text = "";
  for (const point of points) text += String.fromCodePoint(point);
  return text;
}

// Return the characters of a text with runs of white space as one space. They are one group; for characters within
// words each word is a group, with a space before and after it.
function characterGroups(points, tokens, tables) {
  const inWords = tokens.analyzer === "char_wb";
  const groups = [];
  let characters = [];
  for (let i = 0; i < points.length; i++) {
    if (!tables.isSpace(points[i])) {
      characters.push(String.fromCodePoint(points[i]));
      continue;
    }
    const first = i;
    while (i + 1 < points.length && tables.isSpace(points[i + 1])) i++;
    if (!inWords) characters.push(i > first || points[i] === 0 ? " " : String.fromCodePoint(points[i]));
    else if (characters.length) {
      groups.push([" ", ...characters, " "]);
      characters = [];
    }
  }
  if (!inWords) groups.push(characters);
  else if (characters.length) groups.push([" ", ...characters, " "]);
  return groups;
}

// Return a function from a text to its tokens: words, or n-grams of the units of each group.
function tokenizer(tokens, tables) {
  const stop = new Set(tokens.stop_words);
  const inWords = tokens.analyzer === "char_wb";
  return (text) => {
    const points = foldPoints(text, tokens, tables);
    const word = tokens.analyzer === "word";
    const groups = word ? [wordsOf(points, tokens, tables, stop)] : characterGroups(points, tokens, tables);
    const found = [];
    for (const units of groups) {
      for (let n = tokens.least; n <= tokens.most; n++) {
        for (let k = 0; k + n <= units.length; k++) found.push(units.slice(k, k + n).join(word ? " " : ""));
      }
      if (inWords && units.length && units.length < tokens.least) found.push(units.join(""));
    }
    return found;
  };
}

const MASK = (1n << 64n) - 1n;

function mixHalves(a, b) {
  const product = a * b;
  return (product & MASK) ^ (product >> 64n);
}

// Return the bucket of a rare word, a hash of its bytes as in kernels/word_index.py.
function bucketOf(word, buckets, seeds) {
  const bytes = new TextEncoder().encode(word);
  const size = bytes.length;
  const eight = (begin) => {
    let number = 0n;
    for (let b = 7; b >= 0; b--) number = (number << 8n) | BigInt(begin + b < size ? bytes[begin + b] : 0);
    return number;
  };
  let first;
  let more;
  if (size < 16) {
    first = eight(0);
    more = eight(8) | (BigInt(size) << 56n);
  } else {
    first = seeds[0];
    for (let place = 0; place < size - 8; place += 8) first = mixHalves(first ^ eight(place), seeds[1]);
    first = mixHalves(first ^ eight(size - 8), seeds[2]);
    more = BigInt(size) | (0xffn << 56n);
  }
  return Number(mixHalves(first ^ seeds[3], more ^ seeds[4]) % BigInt(buckets));
}

// Return a function from a word to its index in the vocabulary; undefined for unknown words.
function wordNumbers({ words, buckets, seeds }) {
  const numbers = new Map(words.map((word, number) => [word, number]));
  if (!buckets) return (word) => numbers.get(word);
  const bucketNumber = new Map();
  words.forEach((word, number) => {
    if (word.startsWith("\0")) bucketNumber.set(parseInt(word.slice(1), 16), number);
  });
  const large = seeds.map(BigInt);
  return (word) => (numbers.has(word) ? numbers.get(word) : bucketNumber.get(bucketOf(word, buckets, large)));
}

const AMOUNTS = { count: (n) => n, log: (n) => 1 + Math.log(n), root: Math.sqrt, presence: () => 1 };

// Return the evidence of a text column: a function from a text to a number per class.
function scoreWords(encoded, { classes, characters }) {
  const tokensOf = tokenizer(encoded.tokens, characters);
  const numberOf = wordNumbers(encoded);
  const scores = decodeArray(encoded.scores);
  const row = decodeArray(encoded.row);
  const plain = encoded.term_counts === "count" && !encoded.normalize;

  // Return the known words, each with its amount.
  function knownWords(text) {
    const numbers = tokensOf(text).map(numberOf).filter((number) => number !== undefined);
    if (plain && encoded.tempering === 0) return numbers.map((number) => [number, 1]);
    const times = new Map();
    for (const number of numbers) times.set(number, (times.get(number) || 0) + 1);
    const found = Array.from(times, ([number, count]) => [number, AMOUNTS[encoded.term_counts](count)]);
    if (!encoded.normalize) return found;
    const length = Math.sqrt(found.reduce((sum, [, amount]) => sum + amount * amount, 0));
    return found.map(([number, amount]) => [number, amount / Math.max(length, 1e-300)]);
  }

  function addAmounts(words, total) {
    for (const [number, amount] of words) {
      for (let c = 0; c < classes; c++) total[c] += amount * scores[row[number] * classes + c];
    }
  }

  // Return the score of all words being absent, corrected for those present. Terms of -Infinity are counted separately,
  // so that they can be removed.
  function addPresence(words, total) {
    const zeros = decodeArray(encoded.zeros);
    const blocked = decodeArray(encoded.blocked);
    for (let c = 0; c < classes; c++) {
      let stops = blocked[c];
      for (const [number] of words) {
        const at = 2 * row[number] * classes + c;
        const [one, zero] = [scores[at], scores[at + classes]];
        stops += (one === -Infinity) - (zero === -Infinity);
        total[c] += (one === -Infinity ? 0 : one) - (zero === -Infinity ? 0 : zero);
      }
      total[c] = stops > 0 ? -Infinity : zeros[c] + total[c];
    }
  }

  return (text) => {
    const words = knownWords(text);
    const total = new Float64Array(classes);
    (encoded.presence ? addPresence : addAmounts)(words, total);
    const length = words.reduce((sum, [, amount]) => sum + amount, 0);
    const power = encoded.tempering === 0 ? 1 : Math.max(length, 1) ** -encoded.tempering;
    return total.map((value) => power * value);
  };
}

function textTerm(term, columns, context) {
  const [column] = columns;
  const scoreOf = term.words.length ? scoreWords(term, context) : () => null;
  const score = (row) => (row.text(column) === null ? null : scoreOf(row.text(column)));
  return { columns, read: (row) => row.text(column), score };
}
