// "What if": a form made from the columns of the model, whose values move the posterior and the evidence.
// It needs decibanScorer (the scorer) and two scripts of JSON: #model-json and #what-if-data.
(() => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const read = (id) => JSON.parse(byId(id).textContent);
  const data = read("what-if-data");
  const model = read("model-json");
  const scorer = decibanScorer(model);
  const flags = new Set(model.columns.filter((column) => column.read_as === "flag").map((column) => column.name));
  const DECIBANS = 10 / Math.LN10;
  const SVG = "http://www.w3.org/2000/svg";
  const MOST_CLASSES = 12;
  const inputs = new Map();

  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function drawn(name, attributes, text) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  const shortened = (text, most) => ([...text].length <= most ? text : [...text].slice(0, most - 1).join("") + "…");

  function signed(value) {
    return `${value >= 0 ? "+" : "−"}${Number.isFinite(value) ? Math.abs(value).toFixed(1) : "∞"}`;
  }

  // An input for a column; its value is "" where the cell is missing.
  function inputOf(column, id) {
    const both = flags.has(column.name) ? [false, true] : [0, 1];
    const levels = column.levels || (column.kind === "yes/no" ? both : undefined);
    if (levels && levels.length <= 200) {
      const select = element("select", { id }, element("option", { value: "" }, "(missing)"));
      levels.forEach((level, k) => select.append(element("option", { value: String(k) }, String(level))));
      return { node: select, get: () => (select.value === "" ? null : levels[Number(select.value)]),
        set(value) {
          const place = value === null || value === undefined ? -1 : levels.findIndex((level) => String(level) === String(value));
          select.value = place < 0 ? "" : String(place);
        } };
    }
    const node = column.kind === "text" ? element("textarea", { id, rows: "3" })
      : element("input", { id, type: "text", autocomplete: "off",
        inputmode: column.kind === "number" || column.kind === "count" ? "decimal" : "text" });
    const numeric = column.kind === "number" || column.kind === "count";
    return { node, get() {
      if (node.value.trim() === "" && column.kind !== "text") return null;
      if (node.value === "") return null;
      if (!numeric) return node.value;
      const value = Number(node.value.trim());
      if (Number.isNaN(value)) throw new Error(`${column.name}: "${node.value}" is not a number; enter one, or nothing`);
      return value;
    }, set(value) { node.value = value === null || value === undefined ? "" : String(value); } };
  }

  function buildForm() {
    const byName = new Map(scorer.columns.map((column) => [column.name, column]));
    const rest = element("div", { class: "cards" });
    data.columns.forEach((name, k) => {
      const column = byName.get(name);
      if (!column || column.kind === "unused") return;
      const id = `cell-${k}`;
      const input = inputOf(column, id);
      inputs.set(name, input);
      const field = element("div", {}, element("label", { for: id }, name), input.node);
      (k < data.open ? byId("what-if-form") : rest).append(field);
    });
    if (rest.children.length) {
      byId("what-if-more").append(element("summary", {}, `${rest.children.length} more columns`), rest);
      byId("what-if-more").hidden = false;
    }
    data.rows.forEach(({ name, values }) => {
      const button = element("button", { type: "button" }, name);
      button.addEventListener("click", () => fill(values));
      byId("what-if-buttons").append(button);
    });
  }

  function fill(values) {
    for (const [name, input] of inputs) input.set(Object.hasOwn(values, name) ? values[name] : null);
    update();
  }

  function currentRow() {
    const row = Object.create(null);
    for (const [name, input] of inputs) row[name] = input.get();
    return row;
  }

  function showPosterior(posterior, order) {
    const list = byId("what-if-posterior");
    list.replaceChildren(...order.slice(0, MOST_CLASSES).map((c) => {
      const share = posterior[c];
      const fill = element("span", { class: "fill" });
      fill.style.width = `${100 * share}%`;
      fill.style.background = data.colours[c];
      return element("li", { "data-class": data.classes[c], "data-probability": String(share) },
        element("span", { class: "name" }, data.classes[c]), element("span", { class: "track" }, fill),
        element("span", { class: "number" }, share.toPrecision(4)));
    }));
  }

  // Terms of the sum for one class against another: prior and bias, then columns, the largest first; the rest together.
  function termsOf(row, best, other) {
    const difference = (values) => DECIBANS * (values[best] - values[other]) || 0;
    const found = scorer.columnEvidence(row).map(({ name, values }) => [name, difference(values)]);
    const sorted = found.filter(([, value]) => value !== 0).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    const told = [["prior", difference(scorer.logPrior)]];
    if (scorer.bias.some((value) => value !== 0)) told.push(["bias", difference(scorer.bias)]);
    told.push(...sorted.slice(0, data.terms));
    const rest = sorted.slice(data.terms);
    if (rest.length) told.push([`${rest.length} others`, rest.reduce((sum, [, value]) => sum + value, 0)]);
    return told;
  }

  function showWaterfall(terms, best, other) {
    const { label, number, wide, step } = data.chart;
    const ends = [0];
    const longest = 10 + terms.reduce((sum, [, value]) => sum + (Number.isFinite(value) ? Math.abs(value) : 0), 0);
    const cut = (value) => Math.min(Math.max(value, -longest), longest); // what is infinite can be drawn
    for (const [, value] of terms) ends.push(ends[ends.length - 1] + cut(value));
    const total = terms.reduce((sum, [, value]) => sum + value, 0);
    const [low, high] = [Math.min(...ends), Math.max(...ends)];
    const along = (value) => label + ((wide - label - number) * (value - low)) / (high - low || 1);
    const rows = [...terms.map(([name, value], k) => [name, ends[k], ends[k + 1], value]),
      ["sum", 0, ends[ends.length - 1], total]];
    const tall = step * rows.length + 6;
    const said = `evidence for ${data.classes[best]} against ${data.classes[other]}, in decibans`;
    const svg = drawn("svg", { viewBox: `0 0 ${wide} ${tall}`, width: wide, height: tall, role: "img",
      "aria-label": `${said}: ${rows.map(([name, , , value]) => `${name} ${signed(value)}`).join(", ")}` });
    svg.append(drawn("line", { class: "zero", x1: along(0), x2: along(0), y1: 0, y2: tall }));
    rows.forEach(([name, start, end, value], k) => {
      const middle = step * k + 11;
      svg.append(drawn("text", { class: "end", x: label - 6, y: middle + 4 }, shortened(name, 26)));
      svg.append(drawn("rect", { x: Math.min(along(start), along(end)), y: middle - 6, height: 12,
        width: Math.max(Math.abs(along(end) - along(start)), 0.6), fill: value >= 0 ? data.for : data.against }));
      svg.append(drawn("text", { class: "end", x: wide - 4, y: middle + 4 },
        signed(value)));
    });
    byId("what-if-evidence").replaceChildren(svg);
    byId("what-if-against").textContent = said;
  }

  // The decision of least expected loss.
  function decisionOf(posterior) {
    const risks = data.loss.matrix.map((costs) => costs.reduce((sum, cost, c) => sum + cost * posterior[c], 0));
    const best = risks.indexOf(Math.min(...risks));
    return `decision of least expected loss: ${data.loss.decisions[best]} (${risks[best].toPrecision(4)})`;
  }

  function update() {
    const problem = byId("what-if-problem");
    try {
      const row = currentRow();
      const posterior = scorer.proba(row);
      const order = posterior.map((_, c) => c).sort((a, b) => posterior[b] - posterior[a] || a - b);
      problem.textContent = "";
      showPosterior(posterior, order);
      if (order.length > 1) showWaterfall(termsOf(row, order[0], order[1]), order[0], order[1]);
      const said = `${data.classes[order[0]]}: ${posterior[order[0]].toPrecision(4)}`;
      byId("what-if-said").textContent = data.loss ? `${said}; ${decisionOf(posterior)}` : said;
    } catch (error) {
      problem.textContent = error.message;
    }
  }

  buildForm();
  byId("what-if-clear").addEventListener("click", () => fill({}));
  byId("what-if").addEventListener("input", update);
  byId("what-if").addEventListener("submit", (event) => event.preventDefault());
  fill(data.start);
})();
