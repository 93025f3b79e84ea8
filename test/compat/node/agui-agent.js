// The agents of AG-UI's clients, and what a test asks them.
import * as client0 from 'ag-ui-0';
import * as client1 from 'ag-ui-1';

export const { LEAT_URL: url, LEAT_TOKEN: token, LEAT_GATES: gates } = process.env;
export const headers = { Authorization: `Bearer ${token}` };

export const generations = { '0.0.59': client0, '1.0.0': client1, '1.0.0, binary': client1 };

// newAgent returns the agent of a thread. until waits for a condition, and ends are what the runs ended with.
export function newAgent(version, { agent = 'plain', base = url, fetch, thread = crypto.randomUUID(), messages = [], mode = 'run', query = '' } = {}) {
  const { HttpAgent } = generations[version];
  class Agent extends HttpAgent {
    ends = [];
    #watchers = new Set();

    requestInit(input) {
      const init = super.requestInit(input);
      return version.includes('binary') ? { ...init, headers: { ...init.headers, Accept: 'application/vnd.ag-ui.event+proto' } } : init;
    }

    // ask adds a message of the user and runs.
    ask(text, parameters) {
      this.addMessage({ id: crypto.randomUUID(), role: 'user', content: text });
      return this.go(parameters);
    }

    async go(parameters) {
      try {
        await this.runAgent(parameters);
      } catch (e) {
        this.ends.push(`broken: ${e.message}`);
      }
    }

    until(condition) {
      return new Promise((resolve) => {
        const busy = setInterval(() => {}, 60_000); // else Node ends when nothing else happens, and the test says nothing useful
        const check = () => { if (condition(this)) { this.#watchers.delete(check); clearInterval(busy); resolve(); } };
        this.#watchers.add(check);
        check();
      });
    }

    changed() { for (const w of this.#watchers) w(); }
  }
  const result = new Agent({ url: `${base}/agui/agent/${agent}/${mode}${query}`, threadId: thread, headers, initialMessages: messages, ...(fetch && { fetch }) });
  result.subscribe({
    onMessagesChanged: () => result.changed(),
    onRunFinishedEvent: ({ event }) => { result.ends.push(event.outcome ? event.outcome.type : 'finished'); },
    onRunErrorEvent: ({ event }) => { result.ends.push(`error: ${event.message}`); },
  });
  return result;
}

// textOf is what a page shows of the messages: texts and statuses.
export function textOf(messages) {
  const text = (m) => (m.role === 'activity' && m.activityType === 'status' ? m.content.text : m.role === 'assistant' ? m.content ?? '' : '');
  return messages.map(text).filter(Boolean).join('\n\n');
}

// stored is the list of messages that the gateway has of a thread.
export async function stored(agent, base = url) {
  const late = newAgent('1.0.0', { agent: 'default', thread: agent.threadId, mode: 'connect', base });
  await late.go();
  return late.messages;
}

export const open = (gate) => fetch(`${gates}/${gate}`);
