// Entry point of the page: tabs, the state in the URL, and the source of the model.

import { answersOfScorer } from "./answers.js";
import { asFragment, rowInFragment, valueInFragment } from "./link.js";
import { followService } from "./served.js";
import { tabs } from "./tabs.js";
import { mountTryIt } from "./try_it.js";

const byId = (id) => document.getElementById(id);
const data = (id) => (byId(id) ? JSON.parse(byId(id).textContent) : null);

// Return the scene in the URL, as in #scene=xor&embed; or null.
function sceneFromAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  return given.has("scene") ? given : null;
}

// Return the tab in the URL and the encoded state after it.
function fromAddress() {
  if (sceneFromAddress()) return { tab: "playground", written: "" };
  const [tab, written] = location.hash.slice(1).split("/");
  return { tab, written: written || "" };
}

// Return the row in the URL; or null. An invalid row is reported on the page.
function rowFromAddress() {
  const { tab, written } = fromAddress();
  if (tab !== "try" || !written) return null;
  try {
    return rowInFragment(written);
  } catch (error) {
    byId("page-problem").textContent = error.message;
    return null;
  }
}

// Use the light or the dark colors instead of those of the system.
function setTheme(theme) {
  document.documentElement.style.colorScheme = theme;
  for (const { cssRules } of document.styleSheets)
    for (const { media } of cssRules)
      if (/color-scheme: dark|^(not )?all$/.test(media?.mediaText)) media.mediaText = theme === "dark" ? "all" : "not all";
}

// Show the scene alone, and report its height to the page around, which can fit its frame to it.
function embed() {
  if (document.body.classList.contains("embedded")) return;
  document.body.classList.add("embedded");
  const report = () => parent.postMessage({ deciban: { height: document.body.offsetHeight } }, "*");
  new ResizeObserver(report).observe(document.body);
}

// Start the page; mountPlayground(root) fills the tab "Playground".
export function start({ mountPlayground }) {
  const [model, form, place] = [data("model-json"), data("form-data"), byId("try")];
  const kept = { try: "", playground: "" }; // encoded state of each tab
  let [tryIt, service, playground, opening] = [null, null, null, false];

  // An embedded page keeps its link, so that it stays embedded when reloaded.
  const write = (tab) => {
    if (document.body.classList.contains("embedded")) return;
    history.replaceState(null, "", kept[tab] ? `#${tab}/${kept[tab]}` : `#${tab}`);
  };
  const changed = (state) => {
    kept.try = asFragment(state);
    write("try");
  };
  const bar = tabs(byId("tabs"), (name) => {
    if (name === "playground") play();
    if (service && name === "model") service.shown();
  });
  byId("tabs").addEventListener("click", () => write(bar.shown()));
  byId("tabs").addEventListener("keyup", () => write(bar.shown()));

  // Create the playground when it is first shown.
  function play() {
    if (playground) return;
    playground = mountPlayground(byId("playground"));
    byId("playground").addEventListener("playground-change", () => {
      if (opening) return; // the link stays as it is until a user changes something
      kept.playground = asFragment(playground.state());
      write("playground");
    });
  }

  // Show the scene of a link; embedded, without anything around it.
  function openScene(given) {
    opening = true;
    byId("page-problem").textContent = "";
    try {
      playground.open(given.get("scene"), given.get("example"));
      if (given.has("embed")) embed();
      if (["light", "dark"].includes(given.get("theme"))) {
        setTheme(given.get("theme"));
        playground.restore(playground.state()); // canvases have the colors of the theme
      }
    } catch (error) {
      byId("page-problem").textContent = error.message;
      document.body.classList.remove("embedded");
    } finally {
      opening = false;
    }
  }

  function follow() {
    const scene = sceneFromAddress();
    const { tab, written } = fromAddress();
    const row = rowFromAddress();
    const panel = tryIt || (service && service.panel());
    if (row) kept.try = written;
    if (row && panel) panel.restore(row);
    bar.show(tab);
    if (scene) openScene(scene);
    const played = tab === "playground" && playground ? valueInFragment(written) : null;
    if (played === null) return;
    kept.playground = written;
    playground.restore(played);
  }

  if (rowFromAddress()) kept.try = fromAddress().written;
  if (byId("service")) service = followService(place, bar.shown, { changed, restored: rowFromAddress });
  else if (model && form) tryIt = mountTryIt(place, form, answersOfScorer(model, form), changed);
  follow();
  addEventListener("hashchange", follow);
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the fragment of the URL is the state
    byId("main-part").focus();
  });
}
