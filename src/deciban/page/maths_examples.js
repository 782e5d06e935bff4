// Example points in the plane, the same in every browser.

// Points of a class: [count, [mean x, mean y], [standard deviations along both axes], rotation in degrees].
const CLOUDS = {
  "Equal covariances": [
    [22, [3.6, 4.2], [1.1, 0.8], 30],
    [22, [6.6, 5.8], [1.1, 0.8], 30],
  ],
  "One wide, one narrow": [
    [26, [5, 5], [2.1, 2.0], 0],
    [20, [6, 5.2], [0.6, 0.6], 0],
  ],
  "Correlated columns": [
    [24, [4.4, 5.6], [2.0, 0.45], 45],
    [24, [5.6, 4.4], [2.0, 0.45], 45],
  ],
  "Three classes": [
    [18, [3, 3.2], [1.2, 0.7], 20],
    [18, [7, 4], [0.8, 1.1], 0],
    [18, [4.8, 7.4], [1.5, 0.6], -25],
  ],
};

// The class is a if both columns are low or both are high, otherwise b.
const XOR = "XOR";
const XOR_CLOUD = [10, [3, 3], [0.8, 0.8], 0];

export const PLANE_EXAMPLES = [...Object.keys(CLOUDS), XOR];

// Pseudorandom numbers between 0 and 1 (Park and Miller's generator).
export function uniformNumbers(seed) {
  let state = seed;
  return () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647;
  };
}

// A number from the standard normal distribution (Box and Muller).
export const normalNumber = (uniform) => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());

// Return the points of an example, {x, y, kind}, in a plane of 10 × 10.
export function examplePoints(name) {
  const uniform = uniformNumbers(19);
  const within = (value) => Math.min(Math.max(Number(value.toFixed(2)), 0.2), 9.8);
  const clouds = name === XOR ? [XOR_CLOUD] : CLOUDS[name];
  const points = clouds.flatMap(([count, mean, [along, across], degrees], kind) => {
    const turn = (degrees * Math.PI) / 180;
    return Array.from({ length: count }, () => {
      const [u, v] = [along * normalNumber(uniform), across * normalNumber(uniform)];
      return {
        x: within(mean[0] + u * Math.cos(turn) - v * Math.sin(turn)),
        y: within(mean[1] + u * Math.sin(turn) + v * Math.cos(turn)),
        kind,
      };
    });
  });
  return name === XOR ? points.flatMap(mirrored) : points;
}

// A point in each corner of the plane: each column alone is distributed equally in both classes.
function mirrored({ x, y }) {
  const [across, up] = [x, y].map((value) => Number((10 - value).toFixed(2)));
  return [
    { x, y, kind: 0 },
    { x: across, y: up, kind: 0 },
    { x: across, y, kind: 1 },
    { x, y: up, kind: 1 },
  ];
}
