// Tabs that follow the ARIA pattern: arrow keys, Home and End move the focus, and the focused tab is shown.

// Calls shown(name) when a tab is shown. Returns show(name) and shown().
export function tabs(list, shown) {
  const all = [...list.querySelectorAll('[role="tab"]')];
  const nameOf = (tab) => tab.id.replace("tab-", "");
  let now = null;

  function show(name) {
    const chosen = all.find((tab) => nameOf(tab) === name) || all.find((tab) => nameOf(tab) === now) || all[0];
    for (const tab of all) {
      const isChosen = tab === chosen;
      tab.setAttribute("aria-selected", String(isChosen));
      tab.tabIndex = isChosen ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).hidden = !isChosen;
    }
    now = nameOf(chosen);
    shown(now);
    return chosen;
  }

  list.addEventListener("click", (event) => {
    const tab = event.target.closest('[role="tab"]');
    if (tab) show(nameOf(tab));
  });
  list.addEventListener("keydown", (event) => {
    const place = all.indexOf(document.activeElement);
    const next = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: all.length - 1 }[event.key];
    if (next === undefined || place < 0) return;
    event.preventDefault();
    show(nameOf(all[(next + all.length) % all.length])).focus();
  });
  return { show, shown: () => now };
}
