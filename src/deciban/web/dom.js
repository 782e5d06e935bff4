// Helpers for elements of a page and for formatting numbers.

export const SVG = "http://www.w3.org/2000/svg";

// Create an HTML element with attributes and children (elements or texts).
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// Create an SVG element with attributes, and text if given.
export function drawn(name, attributes = {}, text = undefined) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Shorten a text to a maximum length.
export function shortened(text, maxLength) {
  return [...text].length <= maxLength ? text : [...text].slice(0, maxLength - 1).join("") + "…";
}

// Format evidence in decibans with its sign; the sum of +∞ and −∞ is undefined.
export function signed(value) {
  if (Number.isNaN(value)) return "undefined";
  return `${value >= 0 ? "+" : "−"}${Number.isFinite(value) ? Math.abs(value).toFixed(1) : "∞"}`;
}

// Format a probability as a percentage; values next to 0 and 1 are written as bounds (format_probability in Python).
export function percent(chance) {
  if (chance > 1 - 1e-4) return "> 99.99%";
  if (chance < 1e-4) return "< 0.01%";
  const places = Math.min(chance, 1 - chance) < 0.01 ? 2 : 1; // 0.12% and 99.88%, but 12.3%
  return `${Number((100 * chance).toFixed(places))}%`;
}

// Format a loss with four digits.
export function digits(value) {
  return value === 0 || Math.abs(value) >= 1e-3 ? value.toPrecision(4) : value.toExponential(3);
}

// Decibans per nat.
export const DECIBANS = 10 / Math.LN10;
