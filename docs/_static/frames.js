// Frames that show scenes of the playground: as high as the scene, in the colors of the site.

addEventListener("DOMContentLoaded", () => {
  const frames = [...document.querySelectorAll("iframe.playground")];
  const root = document.documentElement;
  const inTheme = (frame) => frame.src.replace(/&theme=\w+|$/, `&theme=${root.dataset.theme}`);

  for (const frame of frames) frame.src = inTheme(frame);
  new MutationObserver(() => {
    for (const frame of frames) frame.contentWindow.location.replace(inTheme(frame));
  }).observe(root, { attributeFilter: ["data-theme"] });
  addEventListener("message", ({ source, data }) => {
    for (const frame of frames)
      if (frame.contentWindow === source && data?.deciban) frame.style.height = `${data.deciban.height + 2}px`;
  });
});
