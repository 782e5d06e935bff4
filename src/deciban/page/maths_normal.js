// The normal distribution and roots of polynomials, to the last digits of a double.

// W. J. Cody's rational approximations (Mathematics of Computation 23, 1969), each as [numerator, denominator], lowest
// power last.
const CODY_CENTER = [
  [0.065682337918207449113, 2.2352520354606839287, 161.02823106855587881, 1067.6894854603709582, 18154.981253343561249],
  [1, 47.20258190468824187, 976.09855173777669322, 10260.932208618978205, 45507.789335026729956],
];
const CODY_SIDE = [
  [
    1.0765576773720192317e-8, 0.39894151208813466764, 8.8831497943883759412, 93.506656132177855979,
    597.27027639480026226, 2494.5375852903726711, 6848.1904505362823326, 11602.651437647350124, 9842.7148383839780218,
  ],
  [
    1, 22.266688044328115691, 235.38790178262499861, 1519.377599407554805, 6485.558298266760755, 18615.571640885098091,
    34900.952721145977266, 38912.003286093271411, 19685.429676859990727,
  ],
];
const CODY_TAIL = [
  [
    0.02307344176494017303, 0.21589853405795699, 0.1274011611602473639, 0.022235277870649807, 0.001421619193227893466,
    2.9112874951168792e-5,
  ],
  [1, 1.28426009614491121, 0.468238212480865118, 0.0659881378689285515, 0.00378239633202758244, 7.29751555083966205e-5],
];
const ROOT_TWO_PI = Math.sqrt(2 * Math.PI);

// The value of a polynomial, its highest power first.
const polynomialAt = (coefficients, x) => coefficients.reduce((sum, coefficient) => sum * x + coefficient, 0);
const ratioAt = ([above, below], x) => polynomialAt(above, x) / polynomialAt(below, x);

// exp(−z²/2) for z ≥ 0; z is split so that the square loses nothing.
function bellAt(z) {
  const near = Math.trunc(z * 16) / 16;
  return Math.exp(-near * near * 0.5) * Math.exp(-(z - near) * (z + near) * 0.5);
}

// The probability of more than z ≥ 0 under the standard normal distribution.
function upperTail(z) {
  if (z <= 0.67448975) return 0.5 - z * ratioAt(CODY_CENTER, z * z);
  if (z <= 5.656854249492381) return bellAt(z) * ratioAt(CODY_SIDE, z);
  if (z > 38.6) return 0;
  const square = 1 / (z * z);
  return (bellAt(z) * (1 / ROOT_TWO_PI - square * ratioAt(CODY_TAIL, square))) / z;
}

// The probability of less than z under the standard normal distribution.
export function normalCdf(z) {
  return z < 0 ? upperTail(-z) : 1 - upperTail(z);
}

// The density of a normal distribution.
export function normalDensity(x, mean, spread) {
  const z = (x - mean) / spread;
  return Math.exp(-0.5 * z * z) / (spread * ROOT_TWO_PI);
}

// The probability of an interval under a normal distribution, from the side where it is known better.
export function normalMass(low, high, mean, spread) {
  const [from, to] = [(low - mean) / spread, (high - mean) / spread];
  if (from > 0) return upperTail(from) - upperTail(to);
  if (to < 0) return upperTail(-to) - upperTail(-from);
  return 1 - upperTail(-from) - upperTail(to);
}

// The real roots of a x² + b x + c in order; none where all three are 0.
export function quadraticRoots(a, b, c) {
  if (a === 0) return b === 0 ? [] : [-c / b];
  const inner = b * b - 4 * a * c;
  if (inner < 0) return [];
  const half = -0.5 * (b + (b < 0 ? -1 : 1) * Math.sqrt(inner)); // no difference of near numbers
  const roots = half === 0 ? [0] : [half / a, c / half];
  return [...new Set(roots.filter(Number.isFinite))].sort((one, other) => one - other);
}

// Where the sign of a function changes, which does so at most once between each two of these points.
export function signChanges(sign, points) {
  const found = [];
  for (let k = 0; k + 1 < points.length; k += 1) {
    let [low, high] = [points[k], points[k + 1]];
    const before = Math.sign(sign(low));
    const after = Math.sign(sign(high));
    if (before === 0) found.push(low);
    if (before * after >= 0) continue;
    for (let middle = 0.5 * (low + high); low < middle && middle < high; middle = 0.5 * (low + high)) {
      if (Math.sign(sign(middle)) === before) low = middle;
      else high = middle;
    }
    found.push(0.5 * (low + high));
  }
  return found;
}

// The real roots between two points of a polynomial of degree 3 or less: its slope's roots divide it into rising and
// falling pieces.
export function cubicRoots([a, b, c, d], low, high) {
  const turns = quadraticRoots(3 * a, 2 * b, c).filter((x) => low < x && x < high);
  return signChanges((x) => polynomialAt([a, b, c, d], x), [low, ...turns, high]);
}
