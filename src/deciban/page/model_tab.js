// "Model": the sections of the report, asked for again when the model has changed.

import { askText } from "./client.js";

// Show the report of a version in an element; what was folded open stays so.
export function modelReport(root) {
  let [shown, asked] = [null, null];
  return async (version) => {
    if (version === shown || version === asked) return;
    asked = version;
    try {
      const text = await askText("model/report");
      const opened = [...root.querySelectorAll("details")].map((one) => one.open);
      const made = document.createElement("template");
      made.innerHTML = text; // the service escapes all names, and the policy of this page lets no other script run
      root.replaceChildren(made.content);
      root.querySelectorAll("details").forEach((one, k) => (one.open = Boolean(opened[k])));
      shown = version;
    } finally {
      asked = null;
    }
  };
}
