// Pieces of evidence, {name, decibans, pan}: examples, their sum, their table, and reading them from a link.

import { element } from "../web/dom.js";
import { significant } from "./maths_belief.js";
import { weatherSteps } from "./maths_counts.js";
import { actionButton, namedTable, numberOr } from "./controls.js";

export const MAX_PIECES = 14;
export const MAX_NAME_LENGTH = 24;
export const PANS = ["against", "tray", "for"];
export const PAN_SIGNS = { against: -1, tray: 0, for: 1 };
const DECIBAN_LIMITS = [0, 100];

// Create a piece from its likelihood ratio.
export function ratioPiece(name, ratio) {
  const decibans = 10 * Math.log10(ratio);
  return { name, decibans: Math.abs(decibans), pan: decibans < 0 ? "against" : "for" };
}

// Return the evidence of the weather example for yes against no.
function weatherPieces() {
  const { priors, steps } = weatherSteps(
    { outlook: "sunny", temperature: "cool", humidity: "high", wind: "strong" },
    0,
  );
  return [
    ratioPiece("prior", priors[1] / priors[0]),
    ...steps.map(({ value, shares }) => ratioPiece(value, shares[1] / shares[0])),
  ];
}

export const BALANCE_EXAMPLES = {
  "Plain weights": () =>
    [
      ["ten times", 10],
      ["twice", 2],
      ["twice", 2],
      ["5 to 4", 1.25],
    ].map(([name, ratio]) => ({ ...ratioPiece(name, ratio), pan: "tray" })),
  "A diagnosis": () => [
    ratioPiece("prior 5%", 0.05 / 0.95),
    ratioPiece("positive", 0.9 / 0.08),
    { ...ratioPiece("positive", 0.9 / 0.08), pan: "tray" },
  ],
  "Tennis on a sunny, cool, humid, windy day": weatherPieces,
};

export const signedSum = (pieces) => pieces.reduce((sum, { decibans, pan }) => sum + PAN_SIGNS[pan] * decibans, 0);
export const signedText = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;

// Format odds: 4 to 1 for, or 4 to 1 against.
export function oddsText(decibans) {
  if (Math.abs(decibans) < 1e-9) return "1 to 1";
  return `${significant(10 ** (Math.abs(decibans) / 10), 4)} to 1 ${decibans > 0 ? "for" : "against"}`;
}

// The pieces with their ratios and decibans, and the sum.
export function piecesTable(pieces, sum, remove) {
  const rows = pieces.map((piece) => {
    const ratio = 10 ** (((PAN_SIGNS[piece.pan] || 1) * piece.decibans) / 10);
    const button = actionButton("Remove", () => remove(piece), {
      class: "plain",
      "aria-label": `Remove ${piece.name}`,
    });
    const weight = piece.pan === "tray" ? "in the tray" : signedText(PAN_SIGNS[piece.pan] * piece.decibans);
    return [piece.name, `× ${significant(ratio, 4)}`, weight, element("td", {}, button)];
  });
  const total = element("td", {}, element("strong", {}, signedText(sum)));
  return namedTable({
    caption: "Ratios multiply, decibans add",
    head: ["evidence", "odds", "decibans", "change"],
    rows,
    foot: [["sum", `× ${significant(10 ** (sum / 10), 4)}`, total, ""]],
  });
}

// Read the pieces from a link; null if missing.
export function piecesFrom(state) {
  if (!Array.isArray(state?.pieces)) return null;
  return state.pieces
    .slice(0, MAX_PIECES)
    .filter(Array.isArray)
    .map(([name, decibans, pan]) => ({
      name: String(name).slice(0, MAX_NAME_LENGTH),
      decibans: numberOr(decibans, DECIBAN_LIMITS, 0),
      pan: PANS.includes(pan) ? pan : "tray",
    }));
}
