// A chat page as the documentation of useChat has it, with the stored messages, resume, stop and approvals of docs/outputs/vercel.md.
import { StrictMode, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { useChat } from '@ai-sdk/react';
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai-7';

const { gateway, id, token, agent } = Object.fromEntries(new URLSearchParams(location.search));
const headers = { Authorization: `Bearer ${token}` };
const chatURL = `${gateway}/api/chat/${id}`;

function Part({ part, onDecision }) {
  switch (part.type) {
    case 'text': return <p>{part.text}</p>;
    case 'dynamic-tool': return (
      <fieldset data-state={part.state}>
        <legend>{part.toolName}</legend>
        <p><code>{JSON.stringify(part.input)}</code></p>
        {part.state === 'output-available' && <p>{String(part.output)}</p>}
        {part.state === 'approval-requested' && [true, false].map((approved) => (
          <button key={approved} onClick={() => onDecision({ id: part.approval.id, approved })}>{approved ? 'Approve' : 'Deny'}</button>
        ))}
      </fieldset>
    );
    default: return null;
  }
}

function Chat({ stored }) {
  const [transport] = useState(() => new DefaultChatTransport({ api: `${gateway}/api/chat?sdk=7`, headers, body: { agent } }));
  const [responses, setResponses] = useState(0); // that have ended
  const chat = useChat({
    id, messages: stored, transport, resume: stored.length > 0, sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    onFinish: () => setResponses((n) => n + 1),
  });
  const [text, setText] = useState('');
  const isRunning = chat.status === 'submitted' || chat.status === 'streaming';
  const send = (event) => {
    event.preventDefault();
    setText('');
    return chat.sendMessage({ text });
  };
  const stop = async () => {
    await chat.stop(); // only disconnects
    await fetch(`${chatURL}/stream`, { method: 'DELETE', headers });
  };
  return (
    <main data-status={chat.status} data-responses={responses}>
      {chat.messages.map((message) => (
        <article key={message.id} data-role={message.role}>
          {message.parts.map((part, i) => <Part key={i} part={part} onDecision={chat.addToolApprovalResponse} />)}
        </article>
      ))}
      {chat.error && <p role="alert">{chat.error.message}</p>}
      <form onSubmit={send}>
        <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} />
        {/* With one key, the click on Stop would submit the form: it becomes Send meanwhile. */}
        {isRunning ? <button key="stop" type="button" onClick={stop}>Stop</button> : <button key="send" disabled={!text}>Send</button>}
      </form>
    </main>
  );
}

const response = await fetch(chatURL, { headers });
const stored = response.ok ? await response.json() : []; // a new chat has none
createRoot(document.getElementById('root')).render(<StrictMode><Chat stored={stored} /></StrictMode>);
