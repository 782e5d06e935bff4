// The page: its tabs, the link that holds what is tried, and where the model comes from.

import { answersOfScorer } from "./answers.js";
import { asFragment, fromFragment } from "./link.js";
import { followService } from "./served.js";
import { tabs } from "./tabs.js";
import { mountTryIt } from "./try_it.js";

const byId = (id) => document.getElementById(id);
const data = (id) => (byId(id) ? JSON.parse(byId(id).textContent) : null);

// The tab and the state that the address of the page names.
function fromAddress() {
  const [tab, state] = location.hash.slice(1).split("/");
  if (tab !== "try" || !state) return { tab, state: null };
  try {
    return { tab, state: fromFragment(state) };
  } catch (error) {
    byId("page-problem").textContent = error.message;
    return { tab, state: null };
  }
}

// Start the page; mountPlayground(root) fills the tab "Playground", where there is one.
export function start({ mountPlayground }) {
  const [model, form, place] = [data("model-json"), data("form-data"), byId("try")];
  let [tryIt, service, kept, isMounted] = [null, null, "", false];

  const write = (tab) => history.replaceState(null, "", tab === "try" && kept ? `#try/${kept}` : `#${tab}`);
  const changed = (state) => {
    kept = asFragment(state);
    write("try");
  };
  const bar = tabs(byId("tabs"), (name) => {
    if (name === "playground" && !isMounted) {
      isMounted = true;
      mountPlayground(byId("playground"));
    }
    if (service && name === "model") service.shown();
  });
  byId("tabs").addEventListener("click", () => write(bar.shown()));
  byId("tabs").addEventListener("keyup", () => write(bar.shown()));

  function follow() {
    const { tab, state } = fromAddress();
    const panel = tryIt || (service && service.panel());
    if (state) kept = location.hash.split("/")[1];
    if (state && panel) panel.restore(state);
    bar.show(tab);
  }

  const { state } = fromAddress();
  if (state) kept = location.hash.split("/")[1];
  if (byId("service")) service = followService(place, bar.shown, { changed, restored: () => fromAddress().state });
  else if (model && form) tryIt = mountTryIt(place, form, answersOfScorer(model, form), changed);
  follow();
  addEventListener("hashchange", follow);
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the fragment of the address is what is tried
    byId("main-part").focus();
  });
}
