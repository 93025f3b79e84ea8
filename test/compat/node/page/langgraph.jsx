// A chat page as the documentation of LangGraph has it, with useStream of @langchain/react, stop, and approvals of docs/outputs/langgraph.md.
import { StrictMode, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { useStream } from '@langchain/react';

const parameters = new URLSearchParams(location.search);
const { gateway, token, agent } = Object.fromEntries(parameters);

// The page keeps the id of its thread in its address, so that a reload shows it again.
function keepThread(id) {
  parameters.set('thread', id);
  history.replaceState(null, '', `?${parameters}`);
}

function Chat() {
  const stream = useStream({
    apiUrl: `${gateway}/langgraph`, apiKey: token, assistantId: agent, threadId: parameters.get('thread'), onThreadId: keepThread,
  });
  const [text, setText] = useState('');
  const send = (event) => {
    event.preventDefault();
    setText('');
    return stream.submit({ messages: [{ type: 'human', content: text }] });
  };
  const answer = (interrupt, type) => stream.respond({ decisions: [{ type }] }, { interruptId: interrupt.id });
  return (
    <main data-status={stream.isThreadLoading ? 'loading' : stream.isLoading ? 'streaming' : 'ready'}>
      {stream.messages.map((message) => message.getType() !== 'tool' && (
        <article key={message.id} data-role={message.getType()}>
          {message.text && <p>{message.text}</p>}
          {message.tool_calls?.map((call) => <code key={call.id}>{call.name} {JSON.stringify(call.args)}</code>)}
        </article>
      ))}
      {stream.interrupts.map((interrupt) => (
        <fieldset key={interrupt.id}>
          <legend>{interrupt.value.actionRequests[0].name}</legend>
          <p>{interrupt.value.actionRequests[0].description}</p>
          <button onClick={() => answer(interrupt, 'approve')}>Approve</button>
          <button onClick={() => answer(interrupt, 'reject')}>Deny</button>
        </fieldset>
      ))}
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
