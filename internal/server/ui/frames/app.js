// Shows an HTML document that the page sends. The document replaces this one and keeps its policy: no origin and no network.
"use strict";
{
  const page = parent;
  const tell = (message) => page.postMessage(message, "*");
  addEventListener("message", ({ source, data }) => {
    if (source !== page || data?.type !== "show") return;
    document.open();
    document.write(data.html);
    document.close();
    document.documentElement.style.colorScheme = data.theme;
    const root = document.documentElement;
    new ResizeObserver(() => tell({ type: "resized", height: root.getBoundingClientRect().height })).observe(root);
  }, { once: true });
  tell({ type: "ready" });
}
