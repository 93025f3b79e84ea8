// Threads of LangGraph's new generation: the controller behind useStream of @langchain/react (1.11.0) and that of the newest SDK, and what a test asks.
import { setTimeout as delay } from 'node:timers/promises';
import { Client as Client11 } from '@langchain/langgraph-sdk';
import { StreamController as Controller11 } from '@langchain/langgraph-sdk/stream';
import { Client as Client15 } from 'langgraph-1';
import { StreamController as Controller15 } from 'langgraph-1/stream';

export const { LEAT_URL: url, LEAT_TOKEN: token, LEAT_GATES: gates } = process.env;
export const generations = { '1.11.0': [Client11, Controller11], '1.15.0': [Client15, Controller15] };
export const open = (gate) => fetch(`${gates}/${gate}`);
const patience = Number(process.env.LEAT_PATIENCE ?? 60_000); // milliseconds
export const newClient = (version = '1.15.0', { base = url, ...options } = {}) => new generations[version][0]({ apiUrl: `${base}/langgraph`, apiKey: token, ...options });

// newThread returns the controller of a thread. until waits for a condition of its state.
export function newThread(version, { agent = 'plain', id = null, base, fetch, ...options } = {}) {
  const client = newClient(version, { base });
  const controller = new generations[version][1]({
    assistantId: agent, client, threadId: id, fetch, reconnectDelayMs: () => 10, maxReconnectAttempts: 1000, transport: 'sse', ...options,
  });
  const state = () => controller.rootStore.getSnapshot();
  const until = (condition) => new Promise((resolve, reject) => {
    const busy = setTimeout(() => reject(new Error(`not ${condition}: ${state().isLoading} ${state().error} ${JSON.stringify(shortOf(state().messages)).slice(0, 2000)}`)), patience);
    const check = () => {
      if (!condition(state())) return;
      unsubscribe();
      clearTimeout(busy);
      resolve();
    };
    const unsubscribe = controller.rootStore.subscribe(check);
    check();
  });
  const submit = (message, submitOptions) => controller.submit({ messages: [{ type: 'human', id: crypto.randomUUID(), ...message }] }, submitOptions);
  // settle waits until nothing runs, and the client shows what the gateway has. Another client may begin something meanwhile.
  const settle = async () => {
    for (const begin = Date.now(); ;) {
      const { next, interrupts, values } = await client.threads.getState(state().threadId);
      const want = JSON.stringify(values.messages.map((m) => [m.id, textOfOne(m)]));
      const s = state();
      if ((next.length === 0 || interrupts.length > 0) && !s.isLoading && JSON.stringify(s.messages.map((m) => [m.id, m.text])) === want) return;
      if (Date.now() - begin > patience) throw new Error(`the client shows ${s.isLoading} ${JSON.stringify(shortOf(s.messages))}, and the gateway has ${next} ${want}`);
      await delay(20); // polls another process
    }
  };
  const send = async (text, submitOptions) => {
    await submit({ content: text }, submitOptions);
    await settle();
  };
  controller.activate();
  return { client, controller, state, until, submit, settle, send };
}

// textOfOne is the text of a message that the gateway has.
const textOfOne = (m) => (typeof m.content === 'string' ? m.content : m.content.map((b) => b.text ?? '').join(''));

// textOf is what a page shows of the answers.
export const textOf = (messages) => messages.filter((m) => m.getType() === 'ai').map((m) => m.text).filter(Boolean).join('\n\n');

// shortOf is a list of messages as a test compares it.
export const shortOf = (messages) => messages.map((m) => [m.getType?.() ?? m.type, m.text ?? m.content]);


// What the agent long writes, and what of it before it waits for the gate.
const word = (i) => `word${'ö'.repeat(i % 7)} 🌍\n`;
export const long = Array.from({ length: 200 }, (_, i) => word(i)).join('');
export const longBefore = Array.from({ length: 20 }, (_, i) => word(i)).join('');
