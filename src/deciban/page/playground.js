// The playground: interactive scenes of Bayes decision theory.

import { element } from "../web/dom.js";
import { mountBalanceScene } from "./scene_balance.js";
import { mountDocumentsScene } from "./scene_documents.js";
import { mountGrowthScene } from "./scene_growth.js";
import { mountLineScene } from "./scene_line.js";
import { mountLinearScene } from "./scene_linear.js";
import { mountPlaneScene } from "./scene_plane.js";
import { mountTheoremScene } from "./scene_theorem.js";
import { mountWeatherScene } from "./scene_weather.js";
import { notifyChange } from "./controls.js";

const SCENES = [
  ["line", "Boundary", mountLineScene],
  ["plane", "Plane", mountPlaneScene],
  ["weather", "Counting", mountWeatherScene],
  ["documents", "Documents", mountDocumentsScene],
  ["linear", "Linear", mountLinearScene],
  ["growth", "Growth", mountGrowthScene],
  ["theorem", "Theorem", mountTheoremScene],
  ["balance", "Balance", mountBalanceScene],
];

// Names in links that show a part of a scene: an example, or a heading to scroll to.
const LINKS = {
  posterior: { scene: "line", heading: "line-posterior" },
  xor: { scene: "plane", example: "xor" },
};

// "Equal priors" as "equal-priors".
const asLinkName = (text) => text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");

// Create the playground in a node; each scene is created when it is first needed. Returns state(), the state of the
// created scenes as plain JSON; restore(state), which ignores what it cannot read; and open(name, example), which shows a scene by its name in a link, and chooses an
// example of it if given. Each change fires "playground-change" on the node.
export function mountPlayground(root) {
  root.classList.add("play");
  const tabs = element("div", { class: "scene-tabs", role: "tablist", "aria-label": "Scenes" });
  root.append(tabs);
  let shown = SCENES[0][0];
  const parts = SCENES.map(([name, title, mount]) => {
    const tab = element(
      "button",
      { type: "button", role: "tab", id: `scene-tab-${name}`, "aria-controls": `scene-panel-${name}` },
      title,
    );
    const panel = element("div", {
      role: "tabpanel",
      id: `scene-panel-${name}`,
      "aria-labelledby": `scene-tab-${name}`,
    });
    tabs.append(tab);
    root.append(panel);
    tab.addEventListener("click", () => choose(name));
    return { name, tab, panel, mount, scene: null };
  });

  const sceneOf = (part) => (part.scene ??= part.mount(part.panel));

  function show(name) {
    shown = name;
    for (const part of parts) {
      const chosen = part.name === name;
      part.tab.setAttribute("aria-selected", String(chosen));
      part.tab.setAttribute("tabindex", chosen ? "0" : "-1");
      part.panel.hidden = !chosen;
      if (chosen) sceneOf(part);
    }
  }

  function choose(name) {
    show(name);
    notifyChange(root);
  }

  const known = [...SCENES.map(([name]) => name), ...Object.keys(LINKS)];
  tabs.addEventListener("keydown", (event) => {
    const at = parts.findIndex(({ name }) => name === shown);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: parts.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = parts[(to + parts.length) % parts.length];
    choose(next.name);
    next.tab.focus();
  });
  show(shown);

  return {
    state: () => ({
      scene: shown,
      ...Object.fromEntries(parts.filter(({ scene }) => scene).map(({ name, scene }) => [name, scene.state()])),
    }),
    restore(state) {
      for (const part of parts)
        if (state && typeof state[part.name] === "object" && state[part.name]) sceneOf(part).restore(state[part.name]);
      if (parts.some(({ name }) => name === state?.scene)) show(state.scene);
    },
    open(name, example) {
      const link = { scene: name, example, ...LINKS[name] };
      const part = parts.find((one) => one.name === link.scene);
      if (!part) throw new Error(`no scene is named ${name}; use one of ${known.join(", ")}`);
      show(part.name);
      if (link.example) {
        const buttons = [...part.panel.querySelectorAll(".examples button")];
        const names = buttons.map((button) => asLinkName(button.textContent));
        const chosen = buttons[names.indexOf(link.example)];
        if (!chosen) throw new Error(`scene ${name} has no example ${link.example}; use one of ${names.join(", ")}`);
        chosen.click();
      }
      if (link.heading) requestAnimationFrame(() => document.getElementById(link.heading).scrollIntoView());
    },
  };
}
