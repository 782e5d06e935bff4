// Frames that show scenes of the playground are as high as the scene, and have the colors of the site.
function fitFrames() {
  const frames = [...document.querySelectorAll("iframe.playground")];
  const root = document.documentElement;
  const inTheme = (frame) => frame.src.replace(/&theme=\w+|$/, `&theme=${root.dataset.theme}`);

  for (const frame of frames) {
    frame.src = inTheme(frame);
    frame.addEventListener("load", () => { frame.dataset.loaded = ""; });
  }
  new MutationObserver(() => {
    for (const frame of frames)
      if ("loaded" in frame.dataset) frame.contentWindow.location.replace(inTheme(frame));
      else frame.src = inTheme(frame);
  }).observe(root, { attributeFilter: ["data-theme"] });
  addEventListener("message", ({ source, data }) => {
    for (const frame of frames)
      if (frame.contentWindow === source && data?.deciban) frame.style.height = `${data.deciban.height + 2}px`;
  });
}

// Names for screen readers that the theme and the gallery leave out.
function nameControls() {
  for (const button of document.querySelectorAll(".search-button-field"))
    button.setAttribute("aria-label", button.textContent.trim().replace(/\s+/g, " ")); // a phone hides the text
  for (const summary of document.querySelectorAll("nav details > summary"))
    summary.setAttribute("aria-label", `Pages of ${summary.closest("li").querySelector("a").textContent.trim()}`);
  for (const link of document.querySelectorAll(".sphx-glr-thumbcontainer a"))
    link.setAttribute("aria-label", link.textContent.trim());
}

addEventListener("DOMContentLoaded", () => {
  fitFrames();
  nameControls();
});
