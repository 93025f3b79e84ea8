// An MCP App or an HTML document that a tool returned, in a sandboxed frame. What it asks for outside of its frame needs consent.

import { useMemo, useState } from "react";

import { theClient } from "../../gateway";
import { persistent, useStore } from "../../store";
import { theme } from "../../theme";
import { CopyButton } from "../../ui/Copy";
import { Icon } from "../../ui/Icon";
import { limitHeight, type Post, Sandbox } from "../../ui/Sandbox";
import { Lines } from "./Lines";
import { line, lines } from "./marks";
import { failure, meaning, type Meaning, notification, result as resultOfRequest } from "./mcp";
import { type Json, resultOf } from "./result";

/** Whether apps run. It applies to all conversations. */
const appsOn = persistent<boolean>("apps", true, (v): v is boolean => typeof v === "boolean");

/** Requests beyond this number are refused until the person has decided. */
const maxRequests = 3;

type Request = Extract<Meaning, { kind: "link" | "message" | "tool" }>;

interface AppProps { name: string; input: string; output: string; conversation: string }

export function App({ name, input, output, conversation }: AppProps) {
  const app = useMemo(() => resultOf(output), [output]);
  const shownTheme = useStore(theme);
  const isOn = useStore(appsOn);
  const [isSource, setSource] = useState(false);
  const [height, setHeight] = useState(160);
  const [requests, setRequests] = useState<readonly { request: Request; post: Post }[]>([]);
  if (app.kind !== "app") return null;
  const receive = (m: Record<string, unknown>, post: Post) => {
    if (m.type === "ready") post({ type: "show", html: app.html, theme: shownTheme });
    else if (m.type === "resized") setHeight((h) => limitHeight(m.height) ?? h);
    const request = meaning(m, shownTheme);
    switch (request.kind) {
      case "ignored": return;
      case "answer": return post(request.reply);
      case "resized": return setHeight((h) => limitHeight(request.height) ?? h);
      case "initialized":
        post(notification("ui/notifications/tool-input", { arguments: argumentsOf(input) }));
        return post(notification("ui/notifications/tool-result", app.content as Record<string, unknown>));
    }
    if (requests.length >= maxRequests) post(failure(request.id, -32000, "earlier requests wait for the person's decision"));
    else setRequests((list) => [...list, { request: request, post }]);
  };
  const decide = (entry: (typeof requests)[number], isAllowed: boolean) => {
    setRequests((list) => list.filter((e) => e !== entry));
    const { request: r, post } = entry;
    if (!isAllowed) return post(failure(r.id, -32000, "the person refused"));
    if (r.kind === "link") {
      window.open(r.url, "_blank", "noopener,noreferrer");
      return post(resultOfRequest(r.id, {}));
    }
    const text = r.kind === "message" ? r.text : `Please call the tool ${r.name} with these arguments: ${r.input}`;
    theClient().conversation(conversation).send(text).then(
      () => post(resultOfRequest(r.id, r.kind === "tool" ? { content: [{ type: "text", text: `The agent was asked to call ${r.name}.` }] } : {})),
      (err: Error) => post(failure(r.id, -32000, err.message)));
  };
  const title = line(app.title || name, 80);
  return (
    <figure className="app" aria-label={`App: ${title}`}>
      <figcaption>
        <bdi>{title}</bdi>
        <button type="button" className="quiet" aria-pressed={isSource} aria-label="View source" title="View source" onClick={() => setSource(!isSource)}><Icon name="code" /></button>
        <CopyButton text={app.html} what="source" />
        {isOn && <button type="button" className="quiet" aria-label="Turn apps off" title="Turn apps off" onClick={() => appsOn.set(false)}><Icon name="stop" /></button>}
      </figcaption>
      {isSource && <Lines name="Source" text={app.html} from="start" />}
      {isOn ? <Sandbox document="app" title={`App: ${title}`} height={height} hidden={isSource} receive={receive} />
        : !isSource && <p className="muted">Apps are turned off. <button type="button" className="link" onClick={() => appsOn.set(true)}>Turn on</button></p>}
      {requests.map((entry, i) => (
        <div key={i} className="request" role="group" aria-label="Request of the app">
          <p>{words[entry.request.kind]} <code>{lines(entry.request.kind === "link" ? entry.request.url : entry.request.kind === "message" ? entry.request.text : `${entry.request.name} ${entry.request.input}`)}</code></p>
          <button type="button" onClick={() => decide(entry, false)}>Deny</button>
          <button type="button" onClick={() => decide(entry, true)}>Allow once</button>
        </div>
      ))}
    </figure>
  );
}

const words = { link: "The app wants to open this address in a new tab:", message: "The app wants to send this message in your name:", tool: "The app wants the agent to call this tool:" };

function argumentsOf(input: string): Json {
  try {
    return JSON.parse(input || "{}") as Json;
  } catch {
    return {}; // arguments that aren't JSON can't be passed
  }
}
