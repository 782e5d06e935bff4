// The tab "Model": the sections of the report, requested again when the model changes.

import { askText } from "./client.js";

// Show the report of a version in an element; unfolded parts stay unfolded.
export function modelReport(root) {
  let [shown, asked] = [null, null];
  return async (version) => {
    if (version === shown || version === asked) return;
    asked = version;
    try {
      const text = await askText("model/report");
      const opened = [...root.querySelectorAll("details")].map((one) => one.open);
      const made = document.createElement("template");
      made.innerHTML = text; // names are escaped by the service, and the Content-Security-Policy blocks other scripts
      root.replaceChildren(made.content);
      root.querySelectorAll("details").forEach((one, k) => (one.open = Boolean(opened[k])));
      shown = version;
    } finally {
      asked = null;
    }
  };
}
