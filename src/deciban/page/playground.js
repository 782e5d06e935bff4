// The playground: five interactive scenes of Bayes decision theory.

import { element } from "../web/dom.js";
import { mountBalanceScene } from "./scene_balance.js";
import { mountLineScene } from "./scene_line.js";
import { mountPlaneScene } from "./scene_plane.js";
import { mountTheoremScene } from "./scene_theorem.js";
import { mountWeatherScene } from "./scene_weather.js";
import { notifyChange } from "./controls.js";

const SCENES = [
  ["line", "Boundary", mountLineScene],
  ["plane", "Plane", mountPlaneScene],
  ["weather", "Counting", mountWeatherScene],
  ["theorem", "Theorem", mountTheoremScene],
  ["balance", "Balance", mountBalanceScene],
];

// Create the playground in a node. Returns state(), the state of all scenes as plain JSON, and restore(state), which
// ignores what it cannot read. Each change fires "playground-change" on the node.
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
    return { name, tab, panel, scene: mount(panel) };
  });

  function show(name) {
    shown = name;
    for (const { name: own, tab, panel } of parts) {
      tab.setAttribute("aria-selected", String(own === name));
      tab.setAttribute("tabindex", own === name ? "0" : "-1");
      panel.hidden = own !== name;
    }
  }

  function choose(name) {
    show(name);
    notifyChange(root);
  }

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
    state: () => ({ scene: shown, ...Object.fromEntries(parts.map(({ name, scene }) => [name, scene.state()])) }),
    restore(state) {
      for (const { name, scene } of parts)
        if (state && typeof state[name] === "object" && state[name]) scene.restore(state[name]);
      if (parts.some(({ name }) => name === state?.scene)) show(state.scene);
    },
  };
}
