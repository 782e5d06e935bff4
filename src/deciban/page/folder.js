// The list of models of a service, with links to their pages.

import { element } from "../web/dom.js";
import { ask, keepToken } from "./client.js";

const byId = (id) => document.getElementById(id);

// A model and its problem, if any; a model that failed to load has no page.
function lineOf({ name, model, problem }) {
  const link = model === null ? element("strong", {}, name) : element("a", { href: `models/${encodeURIComponent(name)}/` }, name);
  const before = model === null ? "failed to load: " : "still serving the previous version: ";
  return problem ? element("li", {}, link, " ", element("span", { class: "wrong" }, before + problem)) : element("li", {}, link);
}

// Show the models, or ask for a token. tokenEntered: a token was submitted before.
export async function showModels(tokenEntered = false) {
  try {
    const { models } = await ask("models");
    byId("models").replaceChildren(...models.map(lineOf));
    byId("service-problem").textContent = models.length ? "" : "The folder contains no models.";
    byId("token-form").hidden = true;
  } catch (error) {
    const denied = error.status === 401 || error.status === 403;
    byId("service-problem").textContent = denied && !tokenEntered ? "" : denied ? "Invalid token." : error.message;
    byId("token-form").hidden = !denied;
  }
}

// Start the page.
export function startFolder() {
  byId("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    keepToken(byId("token").value);
    showModels(true);
  });
  showModels();
}
