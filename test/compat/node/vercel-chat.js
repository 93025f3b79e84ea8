// The chat classes of the AI SDK without a view: what useChat uses, with the state in plain fields.
import * as ai5 from 'ai-5';
import * as ai6 from 'ai-6';
import * as ai7 from 'ai-7';

export const { LEAT_URL: url, LEAT_TOKEN: token, LEAT_GATES: gates } = process.env;

export const sdks = { 5: ai5, 6: ai6, 7: ai7 };

const word = (i) => `word${'ö'.repeat(i % 7)} 🌍\n`;

// What the agent long writes, and what it writes before it waits at its first gate.
export const long = Array.from({ length: 200 }, (_, i) => word(i)).join('');
export const longBefore = Array.from({ length: 20 }, (_, i) => word(i)).join('');

class State {
  error = undefined;
  #status = 'ready';
  #messages;
  #watchers = new Set();

  constructor(messages) { this.#messages = messages; }

  get status() { return this.#status; }
  set status(s) { this.#status = s; this.#changed(); }
  get messages() { return this.#messages; }
  set messages(list) { this.#messages = list; this.#changed(); }
  pushMessage = (m) => { this.messages = [...this.#messages, m]; };
  popMessage = () => { this.messages = this.#messages.slice(0, -1); };
  replaceMessage = (i, m) => { this.messages = this.#messages.map((old, at) => (at === i ? structuredClone(m) : old)); };
  snapshot = (v) => structuredClone(v);

  #changed() { for (const w of this.#watchers) w(); }
  watch(w) { this.#watchers.add(w); return () => this.#watchers.delete(w); }
}

// newChat returns a chat of a version. The options are those of useChat; api, body and fetch are those of its transport.
export function newChat(version, { agent, api = `${url}/api/chat?sdk=${version}`, fetch, messages = [], id = crypto.randomUUID(), ...options } = {}) {
  const { AbstractChat, DefaultChatTransport } = sdks[version];
  const state = new State(messages);
  class Chat extends AbstractChat {
    // until resolves when the chat satisfies a condition.
    until(condition) {
      return new Promise((resolve) => {
        const busy = setInterval(() => {}, 60_000); // else Node ends when nothing else happens, and the test says nothing useful
        const check = () => { if (condition(this)) { stop(); clearInterval(busy); resolve(); } };
        const stop = state.watch(check);
        check();
      });
    }
  }
  const errors = [];
  const chat = new Chat({
    id, state, onError: (e) => errors.push(e),
    transport: new DefaultChatTransport({ api, headers: { Authorization: `Bearer ${token}` }, body: { agent }, ...(fetch && { fetch }) }),
    ...options,
  });
  chat.errors = errors;
  return chat;
}

// textOf is the text of a message: what a page shows if it shows texts and statuses.
export function textOf(message) {
  return (message?.parts ?? []).map((p) => (p.type === 'text' ? p.text : p.type === 'data-status' ? p.data.text : '')).filter(Boolean).join('\n\n');
}

// request makes a request of the gateway.
export async function request(path, options = {}) {
  return fetch(url + path, { ...options, headers: { Authorization: `Bearer ${token}`, ...options.headers } });
}

// stored is the list of messages that the gateway has of a chat.
export async function stored(chat) {
  const r = await request(`/api/chat/${encodeURIComponent(chat.id)}`);
  if (r.status !== 200) throw new Error(`${r.status} ${await r.text()}`);
  return r.json();
}

export const open = (gate) => fetch(`${gates}/${gate}`);

// lossy returns a network whose fetch loses the connection in the middle of a response: after budget bytes, or when lose is called. The error
// is that of browsers.
export function lossy() {
  const network = { budget: Infinity, lose: () => {} };
  network.fetch = async (...args) => {
    const response = await fetch(...args);
    if (response.status !== 200) return response;
    let left = network.budget;
    let isSpent = false;
    const reader = response.body.getReader();
    const body = new ReadableStream({
      start(controller) {
        network.lose = () => {
          controller.error(new TypeError('network error'));
          return reader.cancel();
        };
      },
      async pull(controller) {
        if (isSpent) { await network.lose(); return; } // not earlier: an error discards what was not read yet
        const { done, value } = await reader.read();
        if (done) { controller.close(); return; }
        isSpent = value.length > left;
        controller.enqueue(value.subarray(0, left));
        left -= value.length;
      },
    });
    return new Response(body, { status: response.status, headers: response.headers });
  };
  return network;
}
