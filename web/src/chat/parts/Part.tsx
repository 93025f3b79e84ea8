// One part of a message, rendered by its kind. Unknown kinds are shown as raw data.

import type { Outcome, Part as MessagePart } from "@leat/client";
import { memo } from "react";

import { Markdown } from "../../markdown/Markdown";
import { Boundary } from "./Boundary";
import { Data, Raw } from "./Data";
import type { Hold } from "./Fold";
import { Media } from "./Media";
import { Reasoning } from "./Reasoning";
import { Status } from "./Status";
import { Tool } from "./Tool";

interface PartProps {
  part: MessagePart;
  conversation?: string; // the conversation, for which an expanded reasoning part is remembered
  mine: boolean; // a user wrote the message
  live: boolean; // the part is still growing
  last: boolean; // the last part of its message
  waiting?: boolean; // the part waits for a user's answer
  cut?: Outcome | undefined; // the outcome of the turn, if the turn ended before the part did
  tell?: (part: string, open: boolean) => void; // the reader opens or closes the details of a tool call
  hold: Hold;
}

export const Part = memo(function Part(props: PartProps) {
  const { part, hold } = props;
  return <Boundary of={part} broken={(message) => <Raw part={part} why={message} hold={hold} />}><PartContent {...props} /></Boundary>;
});

function PartContent({ part: p, conversation = "", mine, live, last, waiting = false, cut, tell, hold }: PartProps) {
  switch (p.kind) {
    case "text":
      if (!p.text) return null;
      // A user's text is shown as entered, without Markdown.
      return mine ? <p className="said" dir="auto">{p.text}</p> : <div className="text" data-live={live && last || undefined}><Markdown text={p.text} live={live} /></div>;
    case "reasoning":
      return <Reasoning part={p} live={live} conversation={conversation} hold={hold} />;
    case "tool":
      return <Tool part={p} conversation={conversation} live={live} waiting={waiting} cut={cut} tell={tell} hold={hold} />;
    case "status":
      return <Status part={p} live={live} hold={hold} />;
    case "media":
      return <Media part={p} live={live} />;
  }
  return <Data part={p} hold={hold} />;
}
