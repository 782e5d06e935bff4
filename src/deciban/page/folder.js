// The page of a folder of models: a link to the page of each.

import { element } from "../web/dom.js";
import { ask, keepToken } from "./client.js";

const byId = (id) => document.getElementById(id);

// A model with what is wrong with it; one that cannot answer has no page.
function lineOf({ name, model, problem }) {
  const link = model === null ? element("strong", {}, name) : element("a", { href: `models/${encodeURIComponent(name)}/` }, name);
  const before = model === null ? "cannot answer: " : "an older model goes on: ";
  return problem ? element("li", {}, link, " ", element("span", { class: "wrong" }, before + problem)) : element("li", {}, link);
}

// wasTold: somebody has entered a token. Show the models, or ask for a token.
export async function showModels(wasTold = false) {
  try {
    const { models } = await ask("models");
    byId("models").replaceChildren(...models.map(lineOf));
    byId("service-problem").textContent = models.length ? "" : "There is no model in the folder.";
    byId("token-form").hidden = true;
  } catch (error) {
    const refused = error.status === 401 || error.status === 403;
    byId("service-problem").textContent = refused && !wasTold ? "" : refused ? "The service does not take this token." : error.message;
    byId("token-form").hidden = !refused;
  }
}

// Start the page of a folder.
export function startFolder() {
  byId("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    keepToken(byId("token").value);
    showModels(true);
  });
  showModels();
}
