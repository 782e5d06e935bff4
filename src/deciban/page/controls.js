// Controls shared by scenes: drag handles, fields, responsive charts, announcements for screen readers.

import { drawn, element } from "../web/dom.js";

// Clamp a value to limits.
export function limited(value, [low, high]) {
  return Math.min(Math.max(value, low), high);
}

// Round a value to a multiple of a step.
export function stepped(value, step) {
  return Number((Math.round(value / step) * step).toFixed(6));
}

// Return a number from a link, or a default if it is not a number.
export function numberOr(value, limits, otherwise) {
  return typeof value === "number" && Number.isFinite(value) ? limited(value, limits) : otherwise;
}

// Store numbers as data attributes with all digits.
export function setData(node, numbers) {
  for (const [name, value] of Object.entries(numbers)) {
    node.setAttribute(`data-${name}`, typeof value === "object" ? JSON.stringify(value) : String(value));
  }
}

// Create the section of a scene in a node, with heading and introduction.
export function sceneFrame(root, name, title, ...words) {
  const section = element("section", { class: "scene", "data-scene": name, "aria-labelledby": `scene-${name}` });
  section.append(element("h2", { id: `scene-${name}` }, title));
  for (const text of words) section.append(element("p", { class: "lead" }, text));
  root.append(section);
  return section;
}

// Notify the page that the state of a scene has changed.
export function notifyChange(node) {
  node.dispatchEvent(new CustomEvent("playground-change", { bubbles: true }));
}

// Create a button.
export function actionButton(text, act, attributes = {}) {
  const button = element("button", { type: "button", ...attributes }, text);
  button.addEventListener("click", act);
  return button;
}

// A row of buttons from [text, act] pairs.
export function buttonRow(label, pairs) {
  const row = element("div", { class: "buttons", role: "group", "aria-label": label });
  row.append(...pairs.map(([text, act]) => actionButton(text, act)));
  return row;
}

// A button for each example of a scene; show(name) shows it.
export function exampleButtons(names, show) {
  const row = buttonRow("Examples", names.map((name) => [name, () => show(name)]));
  row.classList.add("examples");
  return row;
}

// Radio buttons from [value, text, …more nodes] in a fieldset; refresh() shows what is chosen.
export function choice(legend, name, options, { read, write }) {
  const node = element("fieldset", { class: "tools" }, element("legend", {}, legend));
  const inputs = options.map(([value, ...parts]) => {
    const input = element("input", { type: "radio", name, value: String(value) });
    input.addEventListener("change", () => write(value));
    node.append(element("label", {}, input, ...parts));
    return [input, value];
  });
  const refresh = () => inputs.forEach(([input, value]) => { input.checked = value === read(); });
  refresh();
  return { node, refresh };
}

// Create a status line for screen readers, updated after a short pause.
export function liveStatus() {
  const node = element("p", { class: "visually-hidden", role: "status" });
  let waiting = 0;
  return {
    node,
    announce(text) {
      clearTimeout(waiting);
      waiting = setTimeout(() => {
        if (node.textContent !== text) node.textContent = text;
      }, 600);
    },
  };
}

// Create tiles of a name and a number; `set` takes [name, number] pairs.
export function numberTiles() {
  const list = element("dl", { class: "tiles" });
  return {
    node: list,
    set(pairs) {
      list.replaceChildren(
        ...pairs.map(([name, value, kind = ""]) => {
          return element("div", { class: kind }, element("dt", {}, name), element("dd", {}, value));
        }),
      );
    },
  };
}

// Create a container for a wide table that can be scrolled by keyboard.
export function scrollBox(label) {
  return element("div", { class: "scroll", role: "group", tabindex: "0", "aria-label": label });
}

// A cell, or a text as one.
const tableCell = (part) => (part instanceof Node ? part : element("td", {}, part));

// A table whose rows begin with a name: [name, cell, …]; cells are texts or elements.
export function namedTable({ caption, head, rows, foot = [], kind = "" }) {
  const line = ([name, ...cells]) => element("tr", {}, element("th", { scope: "row" }, name), ...cells.map(tableCell));
  const headCell = (name) => (name === "" ? element("td", {}) : element("th", { scope: "col" }, name));
  const table = element("table", kind ? { class: kind } : {});
  if (caption) table.append(element("caption", {}, caption));
  table.append(element("thead", {}, element("tr", {}, ...head.map(headCell))), element("tbody", {}, ...rows.map(line)));
  if (foot.length) table.append(element("tfoot", {}, ...foot.map(line)));
  return table;
}

// A cell with a smoothed share and its value: (2 + 1)/(9 + 1·3) = 0.2500; 2/9 without smoothing.
export function fractionCell({ count, rows, alpha, values, share }) {
  const fraction = alpha ? `(${count} + ${alpha})/(${rows} + ${alpha}·${values})` : `${count}/${rows}`;
  return element(
    "td",
    share === 0 ? { class: "zero-cell" } : {},
    element("span", { class: "fraction" }, fraction),
    element("span", { class: "share" }, ` = ${share.toFixed(4)}`),
  );
}

// A dot in the color of a class, before its name.
export function classDot(place) {
  return element("span", { class: `dot class-${place}`, "aria-hidden": "true" });
}

// Create a legend from [kind of swatch, text] pairs.
export function colorKey(pairs) {
  return element(
    "ul",
    { class: "key" },
    ...pairs.map(([kind, text]) =>
      element("li", {}, element("span", { class: `swatch ${kind}`, "aria-hidden": "true" }), text),
    ),
  );
}

// Create a number field with its label; a valid number takes effect while typing.
export function numberField({ label, limits, step, read, write, show = String, hidden = false }) {
  const input = element("input", { type: "number", min: limits[0], max: limits[1], step, inputmode: "decimal" });
  const name = element("span", hidden ? { class: "visually-hidden" } : {}, label);
  const allowed = element("span", { class: "allowed", role: "status" });
  const refresh = () => {
    if (document.activeElement !== input) input.value = show(read());
  };
  input.addEventListener("input", () => {
    const value = input.value.trim() === "" ? NaN : Number(input.value);
    const fits = Number.isFinite(value) && value >= limits[0] && value <= limits[1];
    input.setAttribute("aria-invalid", String(!fits));
    allowed.textContent = fits ? "" : `from ${limits[0]} to ${limits[1]}`;
    if (fits) write(value);
  });
  input.addEventListener("blur", () => {
    input.removeAttribute("aria-invalid");
    allowed.textContent = "";
    refresh();
  });
  return { node: element("label", { class: "field" }, name, input, allowed), input, refresh };
}

// Create a slider with a number field beside it.
export function rangeField({ label, limits, step, read, write, unit = "", scale = 1 }) {
  const range = element("input", { type: "range", min: limits[0], max: limits[1], step, "aria-label": label });
  const number = numberField({
    label: unit ? `${label}, ${unit}` : label,
    limits,
    step,
    hidden: true,
    read: () => read() * scale,
    write: (value) => write(value / scale),
    show: (value) => String(Number(value.toFixed(4))),
  });
  range.addEventListener("input", () => write(Number(range.value) / scale));
  const refresh = () => {
    range.value = String(read() * scale);
    range.setAttribute("aria-valuetext", `${Number((read() * scale).toFixed(4))}${unit && ` ${unit}`}`);
    number.refresh();
  };
  const title = element("span", { class: "range-name", "aria-hidden": "true" }, label);
  const node = element("div", { class: "range" }, title, range, number.node);
  if (unit) node.append(element("span", { class: "unit", "aria-hidden": "true" }, unit));
  return { node, refresh };
}

const LARGE_STEPS = 10;

// Return the value after a key press on a slider, or undefined for other keys.
function valueByKey(event, value, [low, high], step) {
  const size = event.shiftKey ? LARGE_STEPS * step : step;
  return {
    ArrowRight: value + size,
    ArrowUp: value + size,
    ArrowLeft: value - size,
    ArrowDown: value - size,
    PageUp: value + LARGE_STEPS * step,
    PageDown: value - LARGE_STEPS * step,
    Home: low,
    End: high,
  }[event.key];
}

// Create a handle to drag or to move with the arrow keys. `pointed` returns the value at the pointer, `limits` the
// current range, `describe` the value as text.
export function dragHandle({ label, limits, step, read, write, describe, pointed, kind = "" }) {
  const node = drawn("g", { class: `handle ${kind}`, role: "slider", tabindex: "0", "aria-label": label });
  node.append(drawn("circle", { class: "reach", r: 20 }), drawn("circle", { class: "knob", r: 8 }));
  const put = (value) => write(limited(stepped(value, step), limits()));
  followPointer(node, (event) => put(pointed(event)));
  node.addEventListener("keydown", (event) => {
    const value = valueByKey(event, read(), limits(), step);
    if (value === undefined) return;
    event.preventDefault();
    put(value);
  });
  return {
    node,
    place(x, y) {
      node.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)})`);
      const [low, high] = limits();
      node.setAttribute("aria-valuemin", low);
      node.setAttribute("aria-valuemax", high);
      node.setAttribute("aria-valuenow", read());
      node.setAttribute("aria-valuetext", describe(read()));
    },
  };
}

// Call `follow` while a pointer drags this node, and `letGo` when it is released.
export function followPointer(node, follow, letGo = () => {}) {
  let holder = null;
  node.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || holder !== null) return;
    holder = event.pointerId;
    node.setPointerCapture(holder);
    node.classList.add("held");
    node.focus({ preventScroll: true });
    event.preventDefault();
  });
  node.addEventListener("pointermove", (event) => {
    if (event.pointerId === holder) follow(event);
  });
  for (const kind of ["pointerup", "pointercancel"]) {
    node.addEventListener(kind, (event) => {
      if (event.pointerId !== holder) return;
      holder = null;
      node.classList.remove("held");
      letGo(event, kind === "pointercancel");
    });
  }
}

// Create a chart as wide as its container: `draw(width, height)` is called whenever the width changes; `height(width)`
// returns the height.
export function sizedPicture(attributes, height, draw) {
  const svg = drawn("svg", attributes);
  const node = element("div", { class: "picture" });
  node.append(svg);
  let width = 0;
  const redraw = () => {
    if (!width) return;
    const high = Math.round(height(width));
    svg.setAttribute("viewBox", `0 0 ${width} ${high}`);
    svg.setAttribute("width", width);
    svg.setAttribute("height", high);
    draw(width, high);
  };
  new ResizeObserver((entries) => {
    const now = Math.round(entries[0].contentRect.width);
    if (now && now !== width) {
      width = now;
      redraw();
    }
  }).observe(node);
  // Return the position of a pointer inside the chart.
  const placeOf = (event) => {
    const box = svg.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  return { node, svg, redraw, placeOf };
}

// A path through points [x, y].
export function pathThrough(places) {
  return places.map(([x, y], k) => `${k ? "L" : "M"}${x.toFixed(2)} ${y.toFixed(2)}`).join("");
}

// Return round numbers from 0 to a positive value, at most four steps.
export function niceTicks(highest) {
  const power = 10 ** Math.floor(Math.log10(highest / 4));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => highest / size <= 4);
  return Array.from({ length: Math.floor(highest / step + 1e-9) + 1 }, (_, k) => Number((k * step).toPrecision(12)));
}

// The left axis of a chart: a line from `left` to `right` and a number at each tick, and the name of the axis.
export function leftAxis({ ticks, y, left, right, name = "", show = String }) {
  const lines = ticks.flatMap((tick) => [
    drawn("line", { class: "axis grid", x1: left, x2: right, y1: y(tick), y2: y(tick) }),
    drawn("text", { class: "tick end", x: left - 5, y: y(tick) + 4 }, show(tick)),
  ]);
  return name ? [...lines, drawn("text", { class: "axis-name", x: 0, y: 11 }, name)] : lines;
}

// Numbers below a chart.
export function bottomTicks(ticks, x, y, show = String) {
  return ticks.map((tick) => drawn("text", { class: "tick", x: x(tick), y }, show(tick)));
}

// Return a function that calls `act` at most once per animation frame.
export function oncePerFrame(act) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      act();
    });
  };
}
