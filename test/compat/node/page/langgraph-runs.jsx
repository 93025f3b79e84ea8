// A chat page with useStream of the older SDK, which speaks in runs: version 1.15.0 or 2.0.0.
import { StrictMode, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { useStream as useStream15 } from 'langgraph-1/react';
import { useStream as useStream20 } from 'langgraph-2/react';

const parameters = new URLSearchParams(location.search);
const { gateway, token, agent, version } = Object.fromEntries(parameters);
const useStream = version === '2.0.0' ? useStream20 : useStream15;

// The page keeps the id of its thread in its address, so that a reload shows it again.
function keepThread(id) {
  parameters.set('thread', id);
  history.replaceState(null, '', `?${parameters}`);
}

const textOf = ({ content }) => (typeof content === 'string' ? content : content.map((block) => block.text ?? '').join(''));

function Chat() {
  const [thread, setThread] = useState(parameters.get('thread'));
  const stream = useStream({
    apiUrl: `${gateway}/langgraph`, apiKey: token, assistantId: agent, threadId: thread, reconnectOnMount: true, fetchStateHistory: true,
    onThreadId: (id) => { keepThread(id); setThread(id); },
  });
  const [text, setText] = useState('');
  const send = (event) => {
    event.preventDefault();
    setText('');
    const message = { type: 'human', content: text, id: crypto.randomUUID() };
    stream.submit({ messages: [message] }, { streamResumable: true, optimisticValues: (values) => ({ ...values, messages: [...(values.messages ?? []), message] }) });
  };
  const answer = (type) => stream.submit(undefined, { command: { resume: { decisions: [{ type }] } }, streamResumable: true });
  const request = stream.interrupt?.value;
  return (
    <main data-status={stream.isThreadLoading ? 'loading' : stream.isLoading ? 'streaming' : 'ready'}>
      {stream.messages.map((message) => message.type !== 'tool' && (
        <article key={message.id} data-role={message.type}>
          {textOf(message) && <p>{textOf(message)}</p>}
        </article>
      ))}
      {request && (
        <fieldset>
          <legend>{request.action_requests[0].name}</legend>
          <p>{request.action_requests[0].description}</p>
          <button onClick={() => answer('approve')}>Approve</button>
          <button onClick={() => answer('reject')}>Deny</button>
        </fieldset>
      )}
      {stream.error && <p role="alert">{String(stream.error.message ?? stream.error)}</p>}
      <form onSubmit={send}>
        <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} />
        {/* With one key, the click on Stop would submit the form: it becomes Send meanwhile. */}
        {stream.isLoading ? <button key="stop" type="button" onClick={() => stream.stop()}>Stop</button> : <button key="send" disabled={!text}>Send</button>}
      </form>
    </main>
  );
}

createRoot(document.getElementById('root')).render(<StrictMode><Chat /></StrictMode>);
