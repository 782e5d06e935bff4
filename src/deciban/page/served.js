// The page of a service: loads the model, asks for a token if needed, and follows a model that learns online.

import { element } from "../web/dom.js";
import { answersOfScorer, answersOfService } from "./answers.js";
import { ask, keepToken } from "./client.js";
import { modelReport } from "./model_tab.js";
import { mountTryIt } from "./try_it.js";

const byId = (id) => document.getElementById(id);

// Milliseconds between two checks of the version.
const POLL_INTERVAL = 3000;

async function answersNow(form) {
  return form.scorer ? answersOfScorer(await ask("model/scorer"), form) : answersOfService(form);
}

// The form is kept while this stays the same.
const signatureOf = ({ classes, columns }) =>
  JSON.stringify([classes, columns.map(({ name, kind, levels, flag }) => [name, kind, levels?.map(String), flag])]);

function status(model) {
  const learns = model.learning ? "; learns online" : "";
  const rows = Number(model.rows).toLocaleString("en");
  return `Fitted on ${rows} ${rows === "1" ? "row" : "rows"}, ${model.classes.length} classes${learns}. Version ${model.version}.`;
}

// Ask for a token until the service accepts one.
function tokenForm(retry) {
  const input = element("input", { type: "password", id: "token", autocomplete: "off", required: "" });
  const form = element("form", { class: "card token" }, element("label", { for: "token" }, "This service requires a token"),
    input, element("button", { type: "submit" }, "Continue"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    keepToken(input.value);
    retry();
  });
  return form;
}

// Load the model and poll for changes while the page is visible. Returns shown(), to call when "Model" is shown, and panel().
export function followService(place, tab, { changed, restored }) {
  let [version, form, panel, signature, timer, isChecking, tokenEntered] = [null, null, null, null, null, false, false];
  const report = modelReport(byId("report"));
  const setStatus = (text, isProblem = false) => {
    const [one, other] = isProblem ? ["service-problem", "service-status"] : ["service-status", "service-problem"];
    if (byId(one).textContent !== text) byId(one).textContent = text;
    byId(other).textContent = "";
  };

  async function load() {
    const isFirst = panel === null;
    if (isFirst || !form.scorer) form = await ask("model/form");
    let answers = await answersNow(form);
    if (!isFirst && signature === signatureOf(answers)) {
      await panel.use(answers);
      return;
    }
    if (!isFirst) {
      form = await ask("model/form");
      answers = await answersNow(form);
    }
    const kept = isFirst ? restored() : panel.state();
    signature = signatureOf(answers);
    panel = mountTryIt(place, form, answers, changed);
    if (kept) await panel.restore(kept);
  }

  async function check() {
    clearTimeout(timer);
    if (isChecking) return;
    isChecking = true;
    let wait = POLL_INTERVAL;
    try {
      const model = await ask("model");
      if (model.version !== version) await load();
      version = model.version;
      setStatus(status(model));
      if (tab() === "model") await report(version);
    } catch (error) {
      const denied = error.status === 401;
      setStatus(denied ? (tokenEntered ? "Invalid token." : "") : error.message, true);
      if (denied) needToken();
      wait = 2 * POLL_INTERVAL;
    } finally {
      isChecking = false;
    }
    if (!document.hidden && !byId("token")) timer = setTimeout(check, wait);
  }

  function needToken() {
    if (byId("token")) return;
    byId("service").append(tokenForm(() => {
      byId("token").closest("form").remove();
      tokenEntered = true;
      check();
    }));
    byId("token").focus();
  }

  document.addEventListener("visibilitychange", () => !document.hidden && !byId("token") && check());
  check();
  return { shown: () => version !== null && check(), panel: () => panel };
}
