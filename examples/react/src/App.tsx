import { useConnection } from "@leat/client/react";
import { Composer, ConversationList, Messages, type PartComponents, Thread, useClient, useThread } from "@leat/react";
import { useEffect, useState } from "react";
import Markdown from "react-markdown";
import gfm from "remark-gfm";

// Text is Markdown here. All other kinds of parts have the components of @leat/react, with the styles of style.css.
const extensions = [gfm];
const parts: PartComponents = { text: ({ part }) => <Markdown remarkPlugins={extensions}>{part.text}</Markdown> };

const newId = (): string => crypto.randomUUID();

export function App() {
  const [id, setId] = useState(() => location.hash.slice(1) || newId());
  useEffect(() => history.replaceState(null, "", `#${id}`), [id]); // so that a reload returns to it
  const connection = useConnection(useClient());
  return (
    <div className="page">
      <aside>
        <button type="button" onClick={() => setId(newId())}>New conversation</button>
        <ConversationList selected={id} onSelect={setId} />
      </aside>
      <main>
        <Thread key={id} id={id}>
          <Heading />
          {connection !== "connected" && <p role="status">{connection}…</p>}
          <Messages parts={parts} className="messages" />
          <Composer placeholder="Ask the agent" className="composer" />
        </Thread>
      </main>
    </div>
  );
}

function Heading() {
  const { title, busy } = useThread();
  return <h1>{title || "New conversation"} {busy && <small>answering…</small>}</h1>;
}
