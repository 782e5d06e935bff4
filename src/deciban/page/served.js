// The page of a service: it asks for the model, for a token where one is needed, and follows a model that learns.

import { element } from "../web/dom.js";
import { answersOfScorer, answersOfService } from "./answers.js";
import { ask, keepToken } from "./client.js";
import { modelReport } from "./model_tab.js";
import { mountTryIt } from "./try_it.js";

const byId = (id) => document.getElementById(id);

// Milliseconds between two looks at the version.
const EVERY = 3000;

async function answersNow(form) {
  return form.scorer ? answersOfScorer(await ask("model/scorer"), form) : answersOfService(form);
}

// What must not differ for a form to stay.
const signatureOf = ({ classes, columns }) =>
  JSON.stringify([classes, columns.map(({ name, kind, levels, flag }) => [name, kind, levels?.map(String), flag])]);

function status(model) {
  const learns = model.learning ? ", and learns" : "";
  const rows = Number(model.rows).toLocaleString("en");
  return `It knows ${rows} ${rows === "1" ? "row" : "rows"} of ${model.classes.length} classes${learns}. Version ${model.version}.`;
}

// Ask for a token until the service takes one.
function tokenForm(retry) {
  const input = element("input", { type: "password", id: "token", autocomplete: "off", required: "" });
  const form = element("form", { class: "card token" }, element("label", { for: "token" }, "This service asks for a token"),
    input, element("button", { type: "submit" }, "Go on"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    keepToken(input.value);
    retry();
  });
  return form;
}

// Load the model, and look whether it has changed while the page is seen. Returned: what to do when "Model" is shown.
export function followService(place, tab, { changed, restored }) {
  let [version, form, panel, signature, timer, isLooking, wasTold] = [null, null, null, null, null, false, false];
  const report = modelReport(byId("report"));
  const said = (text, isProblem = false) => {
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

  async function look() {
    clearTimeout(timer);
    if (isLooking) return;
    isLooking = true;
    let wait = EVERY;
    try {
      const model = await ask("model");
      if (model.version !== version) await load();
      version = model.version;
      said(status(model));
      if (tab() === "model") await report(version);
    } catch (error) {
      const refused = error.status === 401;
      said(refused ? (wasTold ? "The service does not take this token." : "") : error.message, true);
      if (refused) needToken();
      wait = 2 * EVERY;
    } finally {
      isLooking = false;
    }
    if (!document.hidden && !byId("token")) timer = setTimeout(look, wait);
  }

  function needToken() {
    if (byId("token")) return;
    byId("service").append(tokenForm(() => {
      byId("token").closest("form").remove();
      wasTold = true;
      look();
    }));
    byId("token").focus();
  }

  document.addEventListener("visibilitychange", () => !document.hidden && !byId("token") && look());
  look();
  return { shown: () => version !== null && look(), panel: () => panel };
}
