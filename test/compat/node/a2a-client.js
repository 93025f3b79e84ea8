// The clients of Agent2Agent, 0.3 and 1.0, and what they make of a task. ../a2a_test.go runs the tests with them.
import * as client0 from 'a2a-0/client';
import * as client1 from '@a2a-js/sdk/client';

export const { LEAT_URL: url, LEAT_TOKEN: token, LEAT_GATES: gates } = process.env;

const states = { 1: 'submitted', 2: 'working', 3: 'completed', 4: 'failed', 5: 'canceled', 6: 'input-required' };

// text, state and event are the same for both versions.
const textOf = (p) => p.text ?? (p.content?.$case === 'text' ? p.content.value : '');
const stateOf = (s) => states[s.state] ?? s.state;

// newClient returns a client of an agent. fetch may cut connections.
export async function newClient(version, agent, { base = url, fetch: get = fetch, secret = token } = {}) {
  const fetchImpl = (u, o = {}) => get(u, { ...o, headers: { ...Object.fromEntries(new Headers(o.headers)), Authorization: `Bearer ${secret}` } });
  const sdk = version === '1.0' ? client1 : client0;
  const { ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory, DefaultAgentCardResolver } = sdk;
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { transports: [new JsonRpcTransportFactory({ fetchImpl })], cardResolver: new DefaultAgentCardResolver({ fetchImpl }) });
  const sdkClient = await new ClientFactory(options).createFromUrl(`${base}/a2a/${agent}/`);
  const params = (parts, { task, context, id = crypto.randomUUID(), configuration } = {}) => {
    const list = typeof parts === 'string' ? [version === '1.0' ? { content: { $case: 'text', value: parts } } : { kind: 'text', text: parts }] : parts;
    const own = version === '1.0' ? { role: 1 } : { kind: 'message', role: 'user' };
    return { message: { messageId: id, ...own, parts: list, ...(task && { taskId: task }), ...(context && { contextId: context }) }, ...(configuration && { configuration }) };
  };
  const task = (t) => ({ id: t.id, context: t.contextId, state: stateOf(t.status), message: t.status.message?.parts.map(textOf).join(''), text: (t.artifacts ?? []).filter((a) => a.artifactId === 'answer').map((a) => a.parts.map(textOf).join('')).join(''), raw: t });
  return {
    sdk: sdkClient,
    get: async (id) => task(await sdkClient.getTask({ id })),
    cancel: async (id) => task(await sdkClient.cancelTask({ id })),
    send: async (parts, o) => { const r = await sdkClient.sendMessage(params(parts, o)); return task(r.task ?? r); },
    stream: (parts, o, on) => read(sdkClient.sendMessageStream(params(parts, o)), on),
    subscribe: (id, on) => read(sdkClient.resubscribeTask({ id }), on),
  };

  // read returns the task after a stream, with the events applied to it. on is called after each of them.
  async function read(stream, on = () => {}) {
    let t;
    const files = [];
    for await (const e of stream) {
      const kind = e.payload?.$case ?? { task: 'task', 'status-update': 'statusUpdate', 'artifact-update': 'artifactUpdate' }[e.kind];
      const value = e.payload?.value ?? e;
      if (kind === 'task') t = task(value);
      else if (kind === 'statusUpdate') Object.assign(t, { state: stateOf(value.status), message: value.status.message?.parts.map(textOf).join('') });
      else if (value.artifact.artifactId === 'answer') t.text = (value.append ? t.text : '') + value.artifact.parts.map(textOf).join('');
      else files.push(value.artifact);
      await on(t);
    }
    return { ...t, files: [...(t.raw.artifacts ?? []).filter((a) => a.artifactId !== 'answer'), ...files] };
  }
}

export const open = (gate) => fetch(`${gates}/${gate}`);
