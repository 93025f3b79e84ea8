// Renders texts with the widget's Markdown renderer, over a document that only collects. A line with a JSON string goes in, a line with
// its nodes as JSON and the milliseconds comes out. The first argument is the path of the widget.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

class Node {
  constructor(tag) {
    Object.assign(this, { tag, childNodes: [], attributes: {} });
  }
  append(...children) {
    for (const c of children) this.childNodes.push(...(c.tag === "fragment" ? c.childNodes : [c]));
  }
  setAttribute(name, value) {
    this.attributes[name] = value;
  }
  set textContent(text) {
    this.childNodes = [text];
  }
  get lastChild() {
    return { remove: () => this.childNodes.pop() };
  }
  toString() {
    const { href } = this.attributes;
    const inner = this.childNodes.map((c) => (typeof c === "string" ? c.replaceAll("<", "&lt;") : String(c))).join("");
    return `<${this.tag}${href ? ` ${href}` : ""}>${inner}</${this.tag}>`;
  }
}

globalThis.document = { createElement: (tag) => new Node(tag), createDocumentFragment: () => new Node("fragment") };

const source = readFileSync(process.argv[2], "utf8");
const between = (from, to) => source.slice(source.indexOf(from), source.indexOf(to));
const code = between("  /** Creates an element.", "  /** Creates an icon") + between("  const fence =", "  // ---- Session");
const render = new Function(`${code}; return render;`)();

for await (const line of createInterface({ input: process.stdin })) {
  const text = JSON.parse(line);
  const began = performance.now();
  const whole = render(new Node("div"), text);
  const ms = performance.now() - began;
  // A text that grows must end up as the same nodes.
  const grown = new Node("div");
  if (text.length < 1000) for (let i = 1; i <= text.length; i++) render(grown, text.slice(0, i));
  console.log(JSON.stringify({ nodes: whole.childNodes.join(""), grown: text.length < 1000 ? grown.childNodes.join("") : whole.childNodes.join(""), ms }));
}
