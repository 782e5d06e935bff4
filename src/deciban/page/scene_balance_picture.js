// Drawing of the balance: positions of beam, pans, tray and pieces at a given tilt.

import { drawn } from "../web/dom.js";

export const PIECE_WIDTH = 58;
const PIECE_GAP = 6;
const MAX_TILT = 0.3;
const HANG = 96;

// Return the tilt of the beam; it saturates for strong evidence. Positive tilts to "for".
export function tiltOf(decibans) {
  return MAX_TILT * Math.tanh(decibans / 15);
}

// The height of a piece: heavier is higher.
export function pieceHeight(decibans) {
  return Math.min(32 + 1.3 * Math.abs(decibans), 64);
}

// Places for pieces of these heights, in rows from the bottom, about a middle: [[x, y], …] of their lower middles.
function stacked(heights, middle, bottom, width) {
  const each = PIECE_WIDTH + PIECE_GAP;
  const perRow = Math.max(1, Math.floor((width + PIECE_GAP) / each));
  let floor = bottom;
  const places = [];
  for (let first = 0; first < heights.length; first += perRow) {
    const row = heights.slice(first, first + perRow);
    row.forEach((_, k) => places.push([middle + (k - (row.length - 1) / 2) * each, floor]));
    floor -= Math.max(...row) + 3;
  }
  return places;
}

// How high a stack is, and so how much room the tray needs.
function trayRows(count, width) {
  return Math.max(1, Math.ceil(count / Math.max(1, Math.floor(width / (PIECE_WIDTH + PIECE_GAP)))));
}

// Where everything stands; `pieces` are {decibans, pan}, pans "for", "against" and "tray".
export function balancePlaces(width, pieces, tilt) {
  const arm = Math.min(width * 0.3, 250);
  const [middle, top] = [width / 2, 84];
  const [right, left] = [1, -1].map((side) => [
    middle + side * arm * Math.cos(tilt),
    top + side * arm * Math.sin(tilt),
  ]);
  const plate = Math.min(width * 0.36, 270);
  const pans = { for: [right[0], right[1] + HANG], against: [left[0], left[1] + HANG] };
  const trayTop = top + MAX_TILT * arm + HANG + 34;
  const inTray = pieces.filter(({ pan }) => pan === "tray").length;
  const trayHeight = 14 + 68 * trayRows(inTray, width - 16);
  const places = new Map();
  for (const pan of ["for", "against", "tray"]) {
    const here = pieces.filter((piece) => piece.pan === pan);
    const heights = here.map(({ decibans }) => pieceHeight(decibans));
    const [x, y, room] = pan === "tray" ? [middle, trayTop + trayHeight - 8, width - 16] : [...pans[pan], plate];
    stacked(heights, x, y, room).forEach((place, k) => places.set(here[k], place));
  }
  return { middle, top, left, right, plate, pans, trayTop, trayHeight, places, height: trayTop + trayHeight + 2 };
}

// Draws beam, stand, pans and tray.
export function drawBalance(group, width, { middle, top, left, right, plate, pans, trayTop, trayHeight }) {
  const foot = trayTop - 10;
  const parts = [
    drawn("path", { class: "stand", d: `M${middle} ${top}V${foot}M${middle - 46} ${foot}H${middle + 46}` }),
    drawn("rect", { class: "shelf", x: 1, y: trayTop, width: width - 2, height: trayHeight, rx: 8 }),
    drawn("path", { class: "beam", d: `M${left[0]} ${left[1]}L${right[0]} ${right[1]}` }),
    drawn("circle", { class: "pivot", cx: middle, cy: top, r: 8 }),
  ];
  for (const [pan, end] of [
    ["against", left],
    ["for", right],
  ]) {
    const [x, y] = pans[pan];
    const half = plate / 2;
    parts.push(
      drawn("path", {
        class: "string",
        d: `M${end[0]} ${end[1]}L${x - half} ${y}M${end[0]} ${end[1]}L${x + half} ${y}`,
      }),
    );
    parts.push(
      drawn("path", {
        class: `pan ${pan}`,
        d: `M${x - half} ${y}H${x + half}Q${x + half * 0.7} ${y + 16} ${x} ${y + 16}Q${x - half * 0.7} ${y + 16} ${x - half} ${y}Z`,
      }),
    );
  }
  parts.push(drawn("text", { class: "pan-name", x: width * 0.2, y: 18 }, "against"));
  parts.push(drawn("text", { class: "pan-name", x: width * 0.8, y: 18 }, "for"));
  group.replaceChildren(...parts);
}
