// The parts of a message: each kind has a plain default, which an application replaces by its own component.

import type { Json, Media, Message, Part, PartKind } from "@leat/client";
import { type ComponentType, memo } from "react";

export interface PartProps { part: Part; message: Message }

/** The application's components for some kinds of parts. Keep the object outside of the component, so that memo works. */
export type PartComponents = { readonly [kind in PartKind]?: ComponentType<PartProps> };

const print = (data: Json): string => (typeof data === "string" ? data : JSON.stringify(data, null, 2));

const Text = ({ part }: PartProps) => <div style={{ whiteSpace: "pre-wrap" }}>{part.text}</div>;

const Status = ({ part }: PartProps) => <p role="status">{part.text}</p>;

const Reasoning = ({ part }: PartProps) => (
  <details>
    <summary>{part.ended ? "Reasoning" : "Reasoning…"}</summary>
    <div style={{ whiteSpace: "pre-wrap" }}>{part.text}</div>
  </details>
);

const Tool = ({ part }: PartProps) => (
  <details data-state={part.state}>
    <summary>{part.title ?? part.name ?? "tool"}: {part.state ?? "running"}</summary>
    {part.input && <pre data-field="input">{part.input}</pre>}
    {part.output && <pre data-field="output">{part.output}</pre>}
    {part.stderr && <pre data-field="stderr">{part.stderr}</pre>}
    {part.error && <p role="alert">{part.error.message}</p>}
  </details>
);

// Only these addresses become links or pictures: others, such as javascript:, could run in the page.
const isLink = (url: string | undefined): url is string => !!url && (url.startsWith("/") || /^(https?|blob):/i.test(url));

const MediaPart = ({ part }: PartProps) => {
  const { url, mime, name, alt }: Media = part.media ?? {};
  if (!isLink(url)) return <p>{name ?? alt ?? "a file"}</p>;
  if (mime?.startsWith("image/")) return <img src={url} alt={alt ?? name ?? ""} />;
  return <a href={url} target="_blank" rel="noreferrer">{name ?? url}</a>;
};

const Data = ({ part }: PartProps) => <pre>{part.data === undefined ? "" : print(part.data)}</pre>;

const defaults: Required<PartComponents> = { text: Text, status: Status, reasoning: Reasoning, tool: Tool, media: MediaPart, data: Data };

const isEmpty = (p: Part): boolean => (p.kind === "text" || p.kind === "reasoning" || p.kind === "status") && !p.text;

/** Renders the parts of a message in their order. */
export const Parts = memo(function Parts({ message, components }: { message: Message; components?: PartComponents | undefined }) {
  return message.parts.filter((p) => !isEmpty(p)).map((part) => {
    const Component = components?.[part.kind] ?? defaults[part.kind] ?? Data; // a newer gateway may have kinds that this version lacks
    return <div key={part.id} data-part={part.kind}><Component part={part} message={message} /></div>;
  });
});
