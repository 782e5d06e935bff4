// Elements of a page, and numbers as people read them.

export const SVG = "http://www.w3.org/2000/svg";

// An element of HTML with attributes and children (elements or texts).
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// An element of SVG with attributes, and text if given.
export function drawn(name, attributes = {}, text = undefined) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// A text with at most so many characters.
export function shortened(text, most) {
  return [...text].length <= most ? text : [...text].slice(0, most - 1).join("") + "…";
}

// Evidence in decibans with its sign; evidence of +∞ and of −∞ has no sum.
export function signed(value) {
  if (Number.isNaN(value)) return "undefined";
  return `${value >= 0 ? "+" : "−"}${Number.isFinite(value) ? Math.abs(value).toFixed(1) : "∞"}`;
}

// A probability or a loss in four digits, short also where it is small.
export function digits(value) {
  return value === 0 || Math.abs(value) >= 1e-3 ? value.toPrecision(4) : value.toExponential(3);
}

// Nats as decibans.
export const DECIBANS = 10 / Math.LN10;
