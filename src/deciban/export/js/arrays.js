// Numbers and arrays of the model's JSON; see encoding.py.

const SIZES = { f8: 8, i4: 4, u2: 2, u1: 1 };

function decodedNumber(value) {
  if (typeof value === "number") return value;
  return { inf: Infinity, "-inf": -Infinity, nan: NaN }[value];
}

// The numbers of a list or of base64, little-endian whatever the machine is.
function decodedArray(encoded) {
  if (Array.isArray(encoded)) return Float64Array.from(encoded, decodedNumber);
  const kind = Object.keys(encoded)[0];
  const text = atob(encoded[kind]);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const view = new DataView(bytes.buffer);
  const size = SIZES[kind];
  const found = new Float64Array(bytes.length / size);
  for (let i = 0; i < found.length; i++) {
    if (kind === "f8") found[i] = view.getFloat64(8 * i, true);
    else if (kind === "i4") found[i] = view.getInt32(4 * i, true);
    else found[i] = kind === "u2" ? view.getUint16(2 * i, true) : bytes[i];
  }
  return found;
}

// Fixed-point numbers of a few bytes each, or doubles.
function decodedFixed(encoded) {
  if (!encoded.places) return decodedArray(encoded);
  const { low, step, size } = encoded;
  const parts = decodedArray(encoded.places);
  const found = new Float64Array(parts.length / size);
  for (let i = 0; i < found.length; i++) {
    let place = 0;
    for (let k = size - 1; k >= 0; k--) place = 256 * place + parts[size * i + k];
    found[i] = low + step * place;
  }
  return found;
}

// Whether a code point is in a set that is written as runs: how many are left out, how many follow, and so on.
function pointSet(runs) {
  let end = 0;
  for (const size of runs) end += size;
  const flags = new Uint8Array(end);
  let at = 0;
  for (let k = 0; k < runs.length; k += 2) {
    at += runs[k];
    flags.fill(1, at, at + runs[k + 1]);
    at += runs[k + 1];
  }
  return (point) => point < end && flags[point] === 1;
}

// How many of the rising numbers do not lie above a number.
function countUpTo(rising, number) {
  let low = 0;
  let high = rising.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rising[middle] <= number) low = middle + 1;
    else high = middle;
  }
  return low;
}
