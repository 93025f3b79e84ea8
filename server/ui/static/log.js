// The log: messages, their parts and what turns ask for, as elements that are changed in place.

import { render, link } from "./markdown.js";
import { visible } from "./transcript.js";

const el = (name, className, ...children) => {
  const e = document.createElement(name);
  if (className) e.className = className;
  e.append(...children);
  return e;
};

// setText changes a text only where it differs, so that a selection in it stays.
const setText = (e, text) => {
  if (e.textContent !== text) e.textContent = text;
};

export class Log {
  // answer(turn, request, decision, text) is called when the person decides.
  constructor(messages, requests, state, answer) {
    Object.assign(this, { messages, requests, state, answer });
    this.clear();
  }

  clear() {
    this.drawn = new Map(); // message id -> {element, parts: Map}
    this.asked = new Map();
    this.messages.replaceChildren();
    this.requests.replaceChildren();
    setText(this.state, "");
  }

  draw(t) {
    const known = new Set();
    let place = null;
    for (const m of t.order) {
      known.add(m.id);
      let d = this.drawn.get(m.id);
      if (!d) {
        d = { element: el("article", m.role), parts: new Map(), body: el("div", "body") };
        d.element.append(d.body);
        this.drawn.set(m.id, d);
      }
      const next = place ? place.nextSibling : this.messages.firstChild;
      if (next !== d.element) this.messages.insertBefore(d.element, next);
      place = d.element;
      this.message(d, m, t.turns.get(m.turn));
    }
    for (const [id, d] of this.drawn) {
      if (!known.has(id)) {
        d.element.remove();
        this.drawn.delete(id);
      }
    }
    this.turns(t);
  }

  message(d, m, turn) {
    for (const p of m.parts) {
      let part = d.parts.get(p.id);
      if (!part) {
        part = { ...makers[makers[p.kind] ? p.kind : "data"](), version: 0 };
        d.parts.set(p.id, part);
        d.body.append(part.element);
      }
      if (part.version !== p.version) {
        part.version = p.version;
        part.update(p);
      }
    }
    const note = m.role === "user" && m.state && m.state !== "started" ? (m.state === "rejected" ? `not answered: ${m.stateReason || ""}` : m.state) : "";
    this.note(d, "note", note);
    this.note(d, "failure", turn && this.last(m, turn) ? failure(turn) : "");
    d.element.classList.toggle("live", !m.ended);
  }

  // last reports whether m is where the end of its turn is told: an ended turn tells it below its last message.
  last(m, turn) {
    return turn.state === "ended" && turn.outcome !== "completed" && turn.lastMessage === m.id;
  }

  note(d, className, text) {
    if (!d[className] && !text) return;
    if (!d[className]) {
      d[className] = el("p", className);
      d.element.append(d[className]);
    }
    setText(d[className], text);
    d[className].hidden = !text;
  }

  turns(t) {
    const open = new Set();
    let state = "";
    for (const turn of t.turns.values()) {
      if (turn.state === "ended") continue;
      if (turn.state === "queued") state ||= "queued";
      if (turn.state === "running" && !turn.parent) state = turn.phase ? `${turn.phase}…` : "working…";
      if (turn.state === "waiting") state = "waiting for you";
      for (const r of turn.requests) {
        const key = `${turn.id}/${r.id}`;
        open.add(key);
        if (!this.asked.has(key)) {
          const e = this.request(turn, r);
          this.asked.set(key, e);
          this.requests.append(e);
        }
      }
    }
    for (const [key, e] of this.asked) {
      if (!open.has(key)) {
        e.remove();
        this.asked.delete(key);
      }
    }
    // A turn that failed before it said anything has no message to tell it below.
    const lost = [...t.turns.values()].filter((x) => x.state === "ended" && !x.parent).at(-1);
    if (!state && lost && lost.outcome !== "completed" && !lost.lastMessage) state = failure(lost);
    setText(this.state, state);
  }

  request(turn, r) {
    const options = r.options?.length ? r.options : r.kind === "approval" ? ["approve", "deny"] : [];
    const e = el("form", "request", el("p", "", r.prompt || `The agent asks for ${r.kind}${r.tool ? ` of ${r.tool}` : ""}.`));
    const send = (decision, text) => {
      for (const c of e.elements) c.disabled = true;
      this.answer(turn.id, r.id, decision, text).catch((err) => {
        for (const c of e.elements) c.disabled = false;
        e.append(el("p", "failure", err.message));
      });
    };
    for (const o of options) {
      const b = el("button", o, o);
      b.type = "button";
      b.onclick = () => send(o, "");
      e.append(b);
    }
    if (r.kind === "input") {
      const input = el("input");
      input.setAttribute("aria-label", "Answer");
      e.append(input, el("button", "", "Answer"));
      e.onsubmit = (event) => {
        event.preventDefault();
        if (input.value.trim()) send("", input.value);
      };
    } else {
      e.onsubmit = (event) => event.preventDefault();
    }
    return e;
  }
}

const failure = (turn) => [turn.outcome, turn.error?.message || turn.reason].filter(Boolean).join(": ");

// lastMessages notes with each turn which of its messages is its last.
export function lastMessages(t) {
  for (const turn of t.turns.values()) turn.lastMessage = "";
  for (const m of t.order) {
    const turn = t.turns.get(m.turn);
    if (turn) turn.lastMessage = m.id;
  }
}

// makers make the element of each kind of part, with the function that brings it up to date.
const makers = {
  text() {
    const element = el("div", "text");
    return { element, update: (p) => ((element.hidden = !p.text.text), render(element, p.text.text)) };
  },

  status() {
    const line = el("span");
    const trail = el("ol");
    const element = el("details", "status", el("summary", "", line), trail);
    return {
      element,
      update(p) {
        line.replaceChildren();
        render(line, p.text.text);
        element.hidden = !p.text.text;
        element.classList.toggle("live", !p.ended);
        trail.replaceChildren(...p.history.map((h) => el("li", "", h)));
      },
    };
  },

  reasoning() {
    const title = el("summary");
    const text = el("div");
    const element = el("details", "reasoning", title, text);
    return {
      element,
      update(p) {
        setText(title, p.ended ? "Thought" : "Thinking…");
        setText(text, p.text.text);
        element.hidden = !p.text.text;
      },
    };
  },

  tool() {
    const name = el("b");
    const title = el("span", "title");
    const state = el("span", "state");
    const texts = { input: el("pre", "input"), output: el("pre", "output"), stderr: el("pre", "stderr") };
    const error = el("p", "failure");
    const element = el("details", "tool", el("summary", "", name, title, state), texts.input, texts.output, texts.stderr, error);
    element.open = true;
    let done = false;
    return {
      element,
      update(p) {
        setText(name, p.name || "tool");
        setText(title, p.title || "");
        setText(state, { running: "running", done: "done", failed: "failed", denied: "denied" }[p.state] || (p.ended ? "done" : "running"));
        element.dataset.state = state.textContent;
        for (const [f, e] of Object.entries(texts)) {
          setText(e, p[f].text);
          e.hidden = !p[f].text;
        }
        setText(error, p.error?.message || "");
        error.hidden = !error.textContent;
        // It folds once when it ends well; what the person opens again stays open.
        if (p.ended && !done) {
          done = true;
          element.open = p.state === "failed";
        }
      },
    };
  },

  media() {
    const element = el("figure", "media");
    return {
      element,
      update(p) {
        const m = p.media || {};
        const name = m.name || m.alt || m.mime || "file";
        const own = /^data:image\/(png|jpeg|gif|webp|avif);/i.test(m.url || "") || ((m.url || "").startsWith("/") && !m.url.startsWith("//"));
        let shown = null;
        if (own && /^image\//.test(m.mime || m.url.slice(5))) {
          shown = el("img");
          shown.src = m.url;
          shown.alt = m.alt || m.name || "";
        }
        shown ||= (m.url && link(m.url, [name])) || el("span", "", name);
        element.replaceChildren(shown, ...(m.alt && shown.tagName !== "SPAN" ? [el("figcaption", "", m.alt)] : []));
      },
    };
  },

  data() {
    const element = el("pre", "data");
    return { element, update: (p) => setText(element, p.data === undefined ? p.text.text : JSON.stringify(p.data, null, 2)) };
  },
};

export { visible };
