// One panel of the plane: the regions of a method, its boundary, its Gaussians and the points.

import { drawn } from "../web/dom.js";
import { contourOf, decidedAt, PLANE_EXTENT } from "./maths_plane.js";

const REGION_CELLS = 120;
const CONTOUR_CELLS = 65;

// A mark per class, so that classes differ not only by color.
export const POINT_MARKS = ["M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z", "M-4.6 -4.6h9.2v9.2h-9.2Z", "M0 -6L5.6 4.4H-5.6Z"];

// Return the current colors of the classes as [red, green, blue].
export function classColorsOf(node) {
  const style = getComputedStyle(node);
  return [0, 1, 2].map((k) => {
    const hex = style.getPropertyValue(`--class-${k}`).trim().slice(1);
    return [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));
  });
}

// Paints which class is decided where.
export function paintRegions(canvas, grid, colors, empty) {
  canvas.width = REGION_CELLS;
  canvas.height = REGION_CELLS;
  if (empty) return;
  const context = canvas.getContext("2d");
  const image = context.createImageData(REGION_CELLS, REGION_CELLS);
  for (let row = 0; row < REGION_CELLS; row += 1) {
    const y = PLANE_EXTENT * (1 - (row + 0.5) / REGION_CELLS);
    for (let column = 0; column < REGION_CELLS; column += 1) {
      const kind = decidedAt(grid, (PLANE_EXTENT * (column + 0.5)) / REGION_CELLS, y);
      image.data.set([...colors[kind], 44], 4 * (row * REGION_CELLS + column));
    }
  }
  context.putImageData(image, 0, 0);
}

// Draw the ellipse at this number of standard deviations from the mean of a Gaussian.
function ellipseOf({ mean, xx, xy, yy }, kind, spreads, size) {
  const scale = size / PLANE_EXTENT;
  const turn = 0.5 * Math.atan2(2 * xy, xx - yy);
  const [middle, apart] = [(xx + yy) / 2, Math.hypot((xx - yy) / 2, xy)];
  const [cx, cy] = [mean[0] * scale, size - mean[1] * scale];
  return drawn("ellipse", {
    class: `spread class-${kind}`,
    cx,
    cy,
    transform: `rotate(${(-turn * 180) / Math.PI} ${cx} ${cy})`,
    rx: spreads * scale * Math.sqrt(middle + apart),
    ry: spreads * scale * Math.sqrt(Math.max(middle - apart, 0)),
  });
}

// Draws the Gaussians of a method and the lines between its regions; of a table, its cells.
export function drawPlaneLines(group, size, gaussians, grid) {
  const scale = size / PLANE_EXTENT;
  group.replaceChildren();
  const parts = Math.sqrt(grid.length);
  for (let k = 1; k < parts; k += 1) {
    const at = ((size * k) / parts).toFixed(1);
    group.append(drawn("path", { class: "axis", d: `M${at} 0V${size}M0 ${at}H${size}` }));
  }
  if (parts > 1) return;
  const [forms] = grid;
  gaussians.forEach((gaussian, kind) => {
    if (gaussian.prior > 0) group.append(ellipseOf(gaussian, kind, 1, size), ellipseOf(gaussian, kind, 2, size));
  });
  const kinds = forms.length > 2 ? forms.map((_, k) => k) : [0];
  const place = ([x, y]) => `${(x * scale).toFixed(1)} ${(size - y * scale).toFixed(1)}`;
  const path = kinds
    .flatMap((kind) => contourOf(forms, kind, PLANE_EXTENT, CONTOUR_CELLS))
    .map(([from, to]) => `M${place(from)}L${place(to)}`)
    .join("");
  if (path) group.append(drawn("path", { class: "boundary-line", d: path }));
}
