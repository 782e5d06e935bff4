// Decibans as a balance: pieces of evidence on two pans, whose sum is the log odds.

import { drawn, element, shortened } from "../web/dom.js";
import { decibansOf, probabilityOf } from "./maths_belief.js";
import {
  actionButton,
  buttonRow,
  exampleButtons,
  followPointer,
  liveStatus,
  notifyChange,
  numberField,
  numberTiles,
  sceneFrame,
  scrollBox,
  setData,
  sizedPicture,
} from "./controls.js";
import {
  BALANCE_EXAMPLES,
  MAX_NAME_LENGTH,
  MAX_PIECES,
  oddsText,
  PAN_SIGNS,
  PANS,
  piecesFrom,
  piecesTable,
  ratioPiece,
  signedSum,
  signedText,
} from "./scene_balance_pieces.js";
import { balancePlaces, drawBalance, PIECE_WIDTH, pieceHeight, tiltOf } from "./scene_balance_picture.js";

const LIKELIHOOD_LIMITS = [0.0001, 1];
const PULL_TIME = 420;

export function mountBalanceScene(root) {
  const scene = sceneFrame(
    root,
    "balance",
    "Evidence as weights on a balance",
    "Odds multiply, so their logarithms add, like weights. A deciban is ten times the log10 of a ratio of " +
      "likelihoods. Drag pieces to a pan, or click them; the beam shows which side the evidence favors.",
  );
  let pieces = BALANCE_EXAMPLES["A diagnosis"]();
  let tilt = tiltOf(signedSum(pieces));
  let pulling = 0;
  let dragged = null;
  const status = liveStatus();
  const tiles = numberTiles();
  const tableHome = scrollBox("The pieces and their sum");
  const picture = sizedPicture(
    {
      role: "group",
      "aria-label": "A balance: arrow keys move a piece to the left pan, to the tray, to the right pan",
    },
    (width) => balancePlaces(width, pieces, 0).height,
    drawPicture,
  );
  const [stand, weights] = [drawn("g", { "aria-hidden": "true" }), drawn("g")];
  picture.svg.append(stand, weights);

  function drawPicture(width) {
    const places = balancePlaces(width, pieces, tilt);
    drawBalance(stand, width, places);
    pieces.forEach((piece, k) => {
      const place = dragged?.piece === piece ? dragged.place : places.places.get(piece);
      const node = weights.children[k];
      node.setAttribute("transform", `translate(${place[0].toFixed(1)} ${place[1].toFixed(1)})`);
      node.setAttribute("class", `piece ${piece.pan}${dragged?.piece === piece ? " held" : ""}`);
      node.setAttribute("aria-valuenow", PAN_SIGNS[piece.pan]);
      node.setAttribute("aria-valuetext", piece.pan === "tray" ? "in the tray" : `on the pan ${piece.pan}`);
    });
  }

  // Swing the beam to its new position; jump if reduced motion is preferred.
  function swing() {
    const [from, to, start] = [tilt, tiltOf(signedSum(pieces)), performance.now()];
    cancelAnimationFrame(pulling);
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) tilt = to;
    picture.redraw();
    if (tilt === to) return;
    const step = (time) => {
      const share = Math.min(Math.max((time - start) / PULL_TIME, 0), 1);
      tilt = from + (to - from) * (1 - (1 - share) ** 3);
      picture.redraw();
      if (share < 1) pulling = requestAnimationFrame(step);
    };
    pulling = requestAnimationFrame(step);
  }

  function putOn(piece, pan) {
    piece.pan = pan;
    changed();
  }

  function changed() {
    update();
    notifyChange(scene);
  }

  function pieceNode(piece) {
    const height = pieceHeight(piece.decibans);
    const node = drawn("g", {
      class: "piece",
      role: "slider",
      tabindex: "0",
      "aria-valuemin": -1,
      "aria-valuemax": 1,
      "aria-label": `${piece.name}, ${piece.decibans.toFixed(2)} decibans`,
    });
    node.append(
      drawn("rect", { x: -PIECE_WIDTH / 2, y: -height, width: PIECE_WIDTH, height, rx: 6 }),
      drawn("text", { class: "weight", y: -height / 2 }, piece.decibans.toFixed(1)),
      drawn("text", { class: "name", y: -height / 2 + 12 }, shortened(piece.name, 10)),
    );
    let from = null;
    followPointer(
      node,
      (event) => {
        const place = picture.placeOf(event);
        from ??= place;
        if (!dragged && Math.hypot(place[0] - from[0], place[1] - from[1]) < 5) return;
        dragged = { piece, place: [place[0], place[1] + height / 2] };
        picture.redraw();
      },
      (event, cancelled) => {
        const [moved, place] = [dragged, picture.placeOf(event)];
        [dragged, from] = [null, null];
        if (cancelled) return picture.redraw();
        if (!moved) return putOn(piece, PANS[(PANS.indexOf(piece.pan) + 1) % 3]);
        return putOn(piece, panAt(place));
      },
    );
    node.addEventListener("keydown", (event) => keyOnPiece(event, piece));
    return node;
  }

  // Return the pan or the tray at a position.
  function panAt([x, y]) {
    const { trayTop, middle } = balancePlaces(picture.svg.getBoundingClientRect().width, pieces, tilt);
    if (y > trayTop - 6) return "tray";
    return x < middle ? "against" : "for";
  }

  function keyOnPiece(event, piece) {
    const at = PANS.indexOf(piece.pan);
    const to = {
      ArrowLeft: at - 1,
      ArrowDown: at - 1,
      ArrowRight: at + 1,
      ArrowUp: at + 1,
      Home: 0,
      End: 2,
      Enter: (at + 1) % 3,
      " ": (at + 1) % 3,
    }[event.key];
    if (event.key === "Delete" || event.key === "Backspace") removePiece(piece);
    else if (to === undefined) return;
    else if (PANS[to]) putOn(piece, PANS[to]);
    event.preventDefault();
  }

  function removePiece(piece) {
    const k = pieces.indexOf(piece);
    pieces = pieces.filter((other) => other !== piece);
    rebuild();
    weights.children[Math.min(k, pieces.length - 1)]?.focus();
    notifyChange(scene);
  }

  function rebuild() {
    weights.replaceChildren(...pieces.map(pieceNode));
    update();
  }

  function update() {
    const sum = signedSum(pieces);
    const probability = probabilityOf(sum);
    tiles.set([
      ["Sum", `${signedText(sum)} decibans`],
      ["Odds", oddsText(sum)],
      ["Probability", `${(100 * probability).toFixed(2)}%`, "stressed"],
    ]);
    tableHome.replaceChildren(piecesTable(pieces, sum, removePiece));
    setData(scene, { decibans: sum, probability, pieces: pieces.length });
    status.announce(`${signedText(sum)} decibans: ${oddsText(sum)}, ${(100 * probability).toFixed(2)} percent.`);
    addButton.disabled = pieces.length >= MAX_PIECES;
    swing();
  }

  const given = { for: 0.9, against: 0.1 };
  const nameInput = element("input", { type: "text", maxlength: String(MAX_NAME_LENGTH), autocomplete: "off" });
  const likelihoodField = (label, pan) =>
    numberField({
      label,
      limits: LIKELIHOOD_LIMITS,
      step: "any",
      read: () => given[pan],
      write: (value) => {
        given[pan] = value;
      },
    });
  const [forField, againstField] = [
    likelihoodField("P(evidence | for)", "for"),
    likelihoodField("P(evidence | against)", "against"),
  ];
  const addButton = actionButton("Add to the balance", () =>
    replace([...pieces, ratioPiece(nameInput.value.trim() || "evidence", given.for / given.against)]),
  );
  const replace = (next) => {
    pieces = next.slice(0, MAX_PIECES);
    rebuild();
    notifyChange(scene);
  };
  const weightsToTake = [
    [10, "ten times"],
    [3, "about twice"],
    [1, "about 5 to 4"],
  ];
  const ready = buttonRow(
    "Weights",
    weightsToTake.map(([decibans, name]) => [
      `Add ${decibans} decibans`,
      () => replace([...pieces, { name, decibans, pan: "tray" }]),
    ]),
  );
  const examples = exampleButtons(Object.keys(BALANCE_EXAMPLES), (name) => replace(BALANCE_EXAMPLES[name]()));
  [forField, againstField].forEach((field) => field.refresh());
  scene.append(
    examples,
    picture.node,
    tiles.node,
    element(
      "p",
      { class: "note" },
      "+10 decibans multiply the odds by 10, +3 by 2 (exactly: 1.995), +20 by 100. " +
        "One deciban is about the smallest change that people notice. Even odds are 0 decibans; " +
        `95% is ${decibansOf(0.95).toFixed(1)}, 99% is ${decibansOf(0.99).toFixed(1)}.`,
    ),
    ready,
    element(
      "fieldset",
      { class: "card" },
      element("legend", {}, "Your own piece of evidence"),
      element(
        "div",
        { class: "fields" },
        element("label", { class: "field" }, element("span", {}, "name"), nameInput),
        forField.node,
        againstField.node,
      ),
      element("div", { class: "buttons" }, addButton),
    ),
    tableHome,
    status.node,
  );
  rebuild();

  return {
    state: () => ({ pieces: pieces.map(({ name, decibans, pan }) => [name, decibans, pan]) }),
    restore(state) {
      const found = piecesFrom(state);
      if (!found) return;
      pieces = found;
      rebuild();
    },
  };
}
