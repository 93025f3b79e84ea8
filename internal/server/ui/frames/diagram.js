// Draws diagrams with Mermaid for the page that shows this frame. The frame has no origin and no network.
"use strict";
{
  const page = parent;
  const drawing = document.getElementById("drawing");
  const tell = (message) => page.postMessage(message, "*");
  const height = () => Math.ceil(drawing.getBoundingClientRect().height);
  let count = 0;
  addEventListener("message", async ({ source, data }) => {
    if (source !== page || data?.type !== "draw") return;
    document.documentElement.style.colorScheme = data.theme;
    try {
      mermaid.initialize({
        startOnLoad: false, securityLevel: "strict", suppressErrorRendering: true, htmlLabels: false, flowchart: { htmlLabels: false },
        look: "classic", theme: data.theme === "dark" ? "dark" : "neutral", fontFamily: "system-ui, sans-serif",
      });
      const { svg } = await mermaid.render(`diagram-${++count}`, data.text);
      drawing.innerHTML = svg;
      tell({ type: "drawn", height: height() });
    } catch (err) {
      tell({ type: "failed", message: String(err?.message ?? err) });
    }
  });
  new ResizeObserver(() => tell({ type: "resized", height: height() })).observe(drawing);
  tell({ type: "ready" });
}
