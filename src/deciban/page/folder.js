// The page of a folder of models: a link to the page of each.

import { element } from "../web/dom.js";
import { ask, keepToken } from "./client.js";

const byId = (id) => document.getElementById(id);

// Show the models, or ask for a token.
export async function showModels() {
  try {
    const { models } = await ask("models");
    const names = models.map((one) => (typeof one === "string" ? one : one.name));
    byId("models").replaceChildren(...names.map((name) =>
      element("li", {}, element("a", { href: `models/${encodeURIComponent(name)}/` }, name))));
    byId("service-problem").textContent = names.length ? "" : "There is no model in the folder.";
    byId("token-form").hidden = true;
  } catch (error) {
    byId("service-problem").textContent = error.message;
    byId("token-form").hidden = error.status !== 401 && error.status !== 403;
  }
}

// Start the page of a folder.
export function startFolder() {
  byId("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    keepToken(byId("token").value);
    showModels();
  });
  showModels();
}
