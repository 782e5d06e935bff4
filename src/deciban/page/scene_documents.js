// Documents drawn word by word and classified by two models: a die (multinomial) and a coin per word (Bernoulli).

import { drawn, element, signed } from "../web/dom.js";
import { CORPORA, DOCUMENT_ALPHA, documentEvidence, documentModel, sideOf } from "./maths_documents.js";
import {
  actionButton,
  buttonRow,
  choice,
  classDot,
  exampleButtons,
  fractionCell,
  leftAxis,
  liveStatus,
  namedTable,
  notifyChange,
  numberTiles,
  sceneFrame,
  scrollBox,
  setData,
  sizedPicture,
} from "./controls.js";

const MAX_WORDS = 60;
const HALF_LETTER = 3.3; // pixels
const MODELS = ["die", "coin"];
const MODEL_NAMES = { die: "multinomial", coin: "Bernoulli" };
const asPercent = (share) => `${(100 * share).toFixed(2)}%`;

// A cell with evidence: a number, and a bar to the side of the class it is for.
function evidenceCell(value, highest, kind = "") {
  const fill = element("span", { class: `fill class-${value > 0 ? 1 : 0}` });
  fill.style.width = `${(50 * Math.abs(value)) / highest}%`;
  fill.style.left = `${value > 0 ? 50 : 50 - (50 * Math.abs(value)) / highest}%`;
  const bar = element("span", { class: "lean", "aria-hidden": "true" }, fill);
  return element("td", kind ? { class: kind } : {}, bar, element("span", { class: "number" }, value ? signed(value) : "0"));
}

export function mountDocumentsScene(root) {
  const scene = sceneFrame(
    root,
    "documents",
    "A document, word by word: die or coins",
    "Two models of how a class writes. Multinomial: each word is a roll of the die of the class. Bernoulli: one toss of " +
      "a coin for each word of the vocabulary, present or absent. Draw documents, or edit one, and see which words " +
      "count: only Bernoulli uses absent words, and only the multinomial counts a repeated word again.",
  );
  let now = fresh("Emails");
  let model = documentModel(CORPORA[now.corpus]);
  const status = liveStatus();
  const tiles = numberTiles();
  const text = element("p", { class: "document" });
  const [tableHome, learnedHome] = ["Evidence of each word", "What both models learned"].map(scrollBox);
  const note = element("p", { class: "quiet" });
  const writerHome = element("div", {});
  const die = sizedPicture({ role: "img" }, () => 98, drawDie);
  const coins = sizedPicture({ role: "img" }, () => 150, drawCoins);

  // The first document of a corpus; `roll` and `tosses` are the last random numbers, for the pictures.
  function fresh(corpus) {
    const words = documentModel(CORPORA[corpus]).words;
    const document = CORPORA[corpus].first.split(" ").map((word) => words.indexOf(word));
    return { corpus, writer: 1, document, roll: null, tosses: null };
  }

  function change(next) {
    now = { ...now, ...next };
    update();
    notifyChange(scene);
  }

  const sharesOf = (name) => model[name][now.writer].map(({ share }) => share);

  function roll(count) {
    const document = [...now.document];
    let last = now.roll;
    for (let k = 0; k < count && document.length < MAX_WORDS; k += 1) {
      last = Math.random();
      document.push(sideOf(sharesOf("die"), last));
    }
    change({ document, roll: last, tosses: null });
  }

  function toss() {
    const tosses = model.words.map(() => Math.random());
    const document = model.words.flatMap((_, j) => (tosses[j] < sharesOf("coin")[j] ? [j] : []));
    change({ document, tosses, roll: null });
  }

  // Add a word at the end, or remove its last occurrence.
  function edit(j, by) {
    const document = [...now.document];
    if (by > 0) document.push(j);
    else document.splice(document.lastIndexOf(j), 1);
    change({ document, roll: null, tosses: null });
    const buttons = tableHome.querySelectorAll(`[data-word="${j}"] button`);
    (buttons[by > 0 ? 1 : 0].disabled ? buttons[by > 0 ? 0 : 1] : buttons[by > 0 ? 1 : 0]).focus();
  }

  // The die of the class as a strip, one side per word; the last roll is a mark on it.
  function drawDie(width) {
    const shares = sharesOf("die");
    let left = 0;
    die.svg.replaceChildren();
    shares.forEach((share, j) => {
      const [x, wide] = [left * width, share * width];
      const rolled = now.roll !== null && sideOf(shares, now.roll) === j;
      die.svg.append(
        drawn("rect", { class: `side class-${now.writer}${rolled ? " rolled" : ""}`, x: x + 1, y: 18, width: wide - 2, height: 34, rx: 4 }),
      );
      const middle = Math.max(x + wide / 2, HALF_LETTER * model.words[j].length); // not beyond the left end
      die.svg.append(drawn("text", { class: "tick", x: middle, y: 66 + 13 * (j % 3) }, model.words[j]));
      if (wide > 30) die.svg.append(drawn("text", { class: "tick side-share", x: x + wide / 2, y: 39 }, share.toFixed(2)));
      left += share;
    });
    if (now.roll === null) return;
    const x = (now.roll * width).toFixed(1);
    die.svg.append(drawn("path", { class: "pointer", d: `M${x} 20l-6 -12h12Z` }));
  }

  // The coins of the class as columns; a dot for each toss, below the top of the column if the word is present.
  function drawCoins(width, height) {
    const shares = sharesOf("coin");
    const [left, top, bottom] = [28, 10, height - 34];
    const y = (share) => bottom - share * (bottom - top);
    const each = (width - left) / shares.length;
    coins.svg.replaceChildren(...leftAxis({ ticks: [0, 0.5, 1], y, left, right: width }));
    shares.forEach((share, j) => {
      const middle = left + (j + 0.5) * each;
      const present = now.tosses && now.tosses[j] < share;
      coins.svg.append(
        drawn("rect", {
          class: `side class-${now.writer}${present ? " rolled" : ""}`,
          x: middle - each * 0.32, y: y(share), width: each * 0.64, height: bottom - y(share),
        }),
        drawn("text", { class: "tick", x: middle, y: height - (j % 2 ? 4 : 18) }, model.words[j]),
      );
      if (now.tosses)
        coins.svg.append(drawn("circle", { class: present ? "toss present" : "toss", cx: middle, cy: y(now.tosses[j]), r: 4.5 }));
    });
  }

  function showDocument() {
    text.replaceChildren(
      ...(now.document.length
        ? now.document.map((j) => element("span", { class: "word" }, model.words[j]))
        : [element("span", { class: "quiet" }, "The document is empty.")]),
    );
    return now.document.length === 1 ? "1 word" : `${now.document.length} words`;
  }

  function showEvidence(times, found) {
    const { classes } = CORPORA[now.corpus];
    const highest = Math.max(...MODELS.flatMap((name) => found[name].map(Math.abs)), Math.abs(found.prior), 1e-9);
    const rows = model.words.map((word, j) => {
      const stepper = (by, sign, verb, disabled) => {
        const button = actionButton(sign, () => edit(j, by), { class: "step", "aria-label": `${verb} ${word}` });
        button.disabled = disabled;
        return button;
      };
      const counter = element(
        "td",
        { "data-word": j, class: "counter" },
        stepper(-1, "−", "Remove", !times[j]),
        element("span", { class: times[j] ? "" : "quiet" }, String(times[j])),
        stepper(1, "+", "Add", now.document.length >= MAX_WORDS),
      );
      const kind = times[j] ? "" : "absent";
      return [word, counter, ...MODELS.map((name) => evidenceCell(found[name][j], highest, kind))];
    });
    const total = (name) => element("td", {}, element("strong", {}, signed(found.sums[name])));
    const posterior = (name) => element("td", {}, element("strong", {}, asPercent(found.posterior[name])));
    tableHome.replaceChildren(
      namedTable({
        kind: "words",
        caption: `Evidence for ${classes[1]} against ${classes[0]}, in decibans`,
        head: ["word", "times", ...MODELS.map((name) => MODEL_NAMES[name])],
        rows: [...rows, ["prior", "", ...MODELS.map(() => evidenceCell(found.prior, highest))]],
        foot: [
          ["sum", "", ...MODELS.map(total)],
          [`P(${classes[1]} | document)`, "", ...MODELS.map(posterior)],
        ],
      }),
    );
    const ofAbsent = found.coin.reduce((sum, value, j) => sum + (times[j] ? 0 : value), 0);
    const repeated = model.words.filter((_, j) => times[j] > 1);
    note.textContent =
      `Absent words: ${signed(ofAbsent)} decibans by Bernoulli, 0 by the multinomial. ` +
      (repeated.length
        ? `Repeated words (${repeated.join(", ")}) count each time by the multinomial, once by Bernoulli.`
        : "A word that occurs twice would count twice by the multinomial, once by Bernoulli.");
  }

  function showLearned() {
    const { classes, documents } = CORPORA[now.corpus];
    const columns = MODELS.flatMap((name) => model[name].map((own) => [name, own]));
    learnedHome.replaceChildren(
      namedTable({
        kind: "sum",
        caption: "P(word | class): occurrences per word of the class (die), documents with the word (coin)",
        head: ["word", ...MODELS.flatMap((name) => classes.map((label) => `${name}: ${label}`))],
        rows: model.words.map((word, j) => [
          word,
          ...columns.map(([, own]) => fractionCell({ ...own[j], alpha: DOCUMENT_ALPHA })),
        ]),
      }),
      ...classes.map((label, k) =>
        element("p", {}, classDot(k), `${label}: ${documents[k].map((document) => `“${document}”`).join(", ")}`),
      ),
    );
  }

  function update() {
    model = documentModel(CORPORA[now.corpus]);
    const { classes } = CORPORA[now.corpus];
    const times = model.words.map((_, j) => now.document.filter((other) => other === j).length);
    const found = documentEvidence(model, times);
    const length = showDocument();
    tiles.set([
      ["Document", length],
      ...MODELS.map((name) => [`P(${classes[1]} | document), ${MODEL_NAMES[name]}`, asPercent(found.posterior[name]), "stressed"]),
    ]);
    showEvidence(times, found);
    showLearned();
    const writer = choice("Write as", "documents-writer", classes.map((label, k) => [k, classDot(k), label]), {
      read: () => now.writer,
      write: (k) => change({ writer: k, roll: null, tosses: null }),
    });
    const focused = writerHome.contains(document.activeElement);
    writerHome.replaceChildren(writer.node);
    if (focused) writerHome.querySelector(":checked").focus();
    die.svg.setAttribute("aria-label", `The die of ${classes[now.writer]}: one side per word`);
    coins.svg.setAttribute("aria-label", `The coins of ${classes[now.writer]}: one per word`);
    [die, coins].forEach((picture) => picture.redraw());
    setData(scene, { posterior: [found.posterior.die, found.posterior.coin], evidence: [found.die, found.coin] });
    status.announce(
      `${length}. ${classes[1]}: ${MODELS.map((name) => `${asPercent(found.posterior[name])} ${MODEL_NAMES[name]}`).join(", ")}.`,
    );
  }

  const examples = exampleButtons(Object.keys(CORPORA), (name) => change(fresh(name)));
  const card = (title, words, picture, buttons) =>
    element("div", { class: "card" }, element("h3", {}, title), element("p", {}, words), picture.node, buttons);
  scene.append(
    examples,
    writerHome,
    element(
      "div",
      { class: "two" },
      card("Multinomial: a die", "One side per word, as wide as its probability. Each roll adds a word.", die,
        buttonRow("Die", [["Roll: add a word", () => roll(1)], ["Roll ten times", () => roll(10)]])),
      card("Bernoulli: coins", "One coin per word. Tossing all of them writes a new document.", coins,
        buttonRow("Coins", [["Toss all coins", toss]])),
    ),
    element("div", { class: "card" }, element("h3", {}, "The document"), text,
      buttonRow("Document", [["Empty the document", () => change({ document: [], roll: null, tosses: null })]])),
    tiles.node,
    tableHome,
    note,
    element("details", {}, element("summary", {}, "What both models learned, and from what"), learnedHome),
    status.node,
  );
  update();

  return {
    state: () => ({ corpus: now.corpus, writer: now.writer, document: now.document }),
    restore(state) {
      if (!Object.hasOwn(CORPORA, state?.corpus)) return;
      const { words } = documentModel(CORPORA[state.corpus]);
      const known = (Array.isArray(state.document) ? state.document : []).filter((j) => words[j] !== undefined && Number.isInteger(j));
      now = { ...fresh(state.corpus), writer: state.writer === 0 ? 0 : 1, document: known.slice(0, MAX_WORDS) };
      update();
    },
  };
}
