// The posterior as bars.

import { element, percent } from "./dom.js";

// Classes with a bar; of more classes, the most probable ones.
const MAX_CLASSES = 12;

// Return the positions of the classes: the predicted one, then the others, the most probable first.
export function bestFirst(posterior, predicted = -1) {
  return posterior.map((_, c) => c)
    .sort((a, b) => (b === predicted) - (a === predicted) || posterior[b] - posterior[a] || a - b);
}

function barOf(name, color) {
  const fill = element("span", { class: "fill" });
  fill.style.background = color;
  const mark = element("span", { class: "mark", hidden: "" });
  const track = element("span", { class: "track" }, fill, mark);
  const [number, change] = [element("span", { class: "number" }), element("span", { class: "change" })];
  const node = element("li", { "data-class": name }, element("span", { class: "name", title: name }, name), track, number, change);
  return { node, fill, mark, number, change };
}

const inPoints = (share) => `${share >= 0 ? "+" : "−"}${(100 * Math.abs(share)).toFixed(1)} points`;

// Create the bars in a list. The returned function shows a posterior, the predicted class `best` and, for comparison, a
// pinned posterior.
export function posteriorBars(list, { classes, colors }) {
  const bars = new Map();
  const bar = (c) => {
    if (!bars.has(c)) bars.set(c, barOf(classes[c], colors[c]));
    return bars.get(c);
  };
  let shown = "";
  return (posterior, best, pinned = null) => {
    const few = classes.length <= MAX_CLASSES;
    const order = few ? classes.map((_, c) => c) : bestFirst(posterior, best).slice(0, MAX_CLASSES);
    if (shown !== order.join()) list.replaceChildren(...order.map((c) => bar(c).node)); // existing nodes are moved
    shown = order.join();
    for (const c of order) {
      const { node, fill, mark, number, change } = bar(c);
      node.dataset.probability = String(posterior[c]);
      node.classList.toggle("best", c === best);
      fill.style.width = `${100 * posterior[c]}%`;
      number.textContent = percent(posterior[c]);
      mark.hidden = pinned === null;
      if (pinned) mark.style.left = `${100 * pinned[c]}%`;
      change.textContent = pinned ? inPoints(posterior[c] - pinned[c]) : "";
    }
  };
}
