// A plugin whose answers contain formulas, diagrams, rich results and many tool calls.

import { picture } from "./gallery.mjs";
import { serve } from "./plugin.mjs";

let tries = 0;

const maths = [
  "The energy is $E = mc^2$, and \\(a^2+b^2=c^2\\). It costs $5 to US$ 7.", "$$\n\\int_0^\\infty e^{-x^2}\\,dx = \\frac{\\sqrt{\\pi}}{2}\n$$",
  "```mermaid\nflowchart LR\n  A[Client] --> B[Gateway]\n```", "```mermaid\nno diagram\n```", "Broken: $\\frac{a$.",
].join("\n\n");

const clock = `<!doctype html><title>Clock</title><p id=state>begins</p><p id=origin></p><p id=reach></p><button>Call</button><script>
  const state = document.getElementById("state");
  document.getElementById("origin").textContent = origin;
  const tries = [() => parent.document.title, () => localStorage.length, () => document.cookie];
  document.getElementById("reach").textContent = tries.map((f) => { try { f(); return "reached"; } catch { return "blocked"; } }).join(" ");
  fetch("https://evil.example/").catch(() => {});
  new Image().src = "https://evil.example/x.png";
  const send = (m) => parent.postMessage({ jsonrpc: "2.0", ...m }, "*");
  let host, input;
  addEventListener("message", ({ data: m }) => {
    if (m.id === 1) { host = m.result.hostInfo.name; send({ method: "ui/notifications/initialized" }); }
    if (m.method === "ui/notifications/tool-input") input = m.params.arguments.zone;
    if (m.method === "ui/notifications/tool-result") state.textContent = "initialized by " + host + ", input " + input + ", result " + m.params.content[0].text;
    if (m.id === 2) state.textContent = m.error ? "error: " + m.error.message : m.result.content[0].text;
  });
  document.querySelector("button").onclick = () => send({ id: 2, method: "tools/call", params: { name: "reset", arguments: {} } });
  send({ id: 1, method: "ui/initialize", params: {} });
</script>`;

const scripts = {
  async words(turn) {
    turn.text("m", "x", `This is try ${++tries}.`);
    turn.done("m");
    turn.end({ usage: { model: "test", input: 12480, output: 812, cost: 0.0312 } });
  },
  // steps N: N tool calls, of which the last runs until it is stopped.
  async steps(turn) {
    const n = Number(turn.rest);
    for (let i = 1; i < n; i++) turn.tool("m", `t${i}`, `tool-${i}`, { input: { step: i }, output: "done" });
    turn.start("m", `t${n}`, "tool", { name: `tool-${n}` });
    while (turn.going()) await new Promise((r) => setTimeout(r, 20));
  },
  async maths(turn) {
    turn.text("m", "x", maths);
    turn.done("m");
    turn.end();
  },
  async app(turn) {
    const output = JSON.stringify({ content: [{ type: "text", text: "12:00" }, { type: "resource", resource: { uri: "ui://clock/main", mimeType: "text/html;profile=mcp-app", text: clock } }] });
    turn.tool("m", "t", "clock", { input: { zone: 7 }, output });
    turn.done("m");
    turn.end();
  },
  async results(turn) {
    turn.tool("m", "t1", "weather", { output: JSON.stringify({ place: "Berlin", days: [{ degrees: 3 }, { degrees: 7 }] }) });
    turn.tool("m", "t2", "patch", { output: "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n" });
    turn.tool("m", "t3", "export", { output: "city,degrees\nBerlin,3\nOslo,-7\n" });
    turn.tool("m", "t4", "plot", { output: JSON.stringify({ content: [{ type: "image", mimeType: "image/png", data: picture(64, 32).split(",")[1] }] }) });
    turn.done("m");
    turn.end();
  },
  async picture(turn) {
    turn.media("m", "i", { url: picture(800, 200), mime: "image/png", name: "wide.png" });
    turn.done("m");
    turn.end();
  },
};

if (process.argv[1]?.endsWith("rich.mjs")) serve(scripts);
