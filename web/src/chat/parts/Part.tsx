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
  conversation?: string; // in which it is shown; what a reader opened there counts for it
  mine: boolean; // of a person
  live: boolean; // it still grows
  last: boolean; // of its message
  waiting?: boolean; // for a person's word
  cut?: Outcome | undefined; // how its turn ended, where that ended it too
  hold: Hold;
}

export const Part = memo(function Part(props: PartProps) {
  const { part, hold } = props;
  return <Boundary of={part} broken={(message) => <Raw part={part} why={message} hold={hold} />}><PartContent {...props} /></Boundary>;
});

function PartContent({ part: p, conversation = "", mine, live, last, waiting = false, cut, hold }: PartProps) {
  switch (p.kind) {
    case "text":
      if (!p.text) return null;
      // What a person wrote is shown as it was written.
      return mine ? <p className="said" dir="auto">{p.text}</p> : <div className="text" data-live={live && last || undefined}><Markdown text={p.text} live={live} /></div>;
    case "reasoning":
      return <Reasoning part={p} live={live} conversation={conversation} hold={hold} />;
    case "tool":
      return <Tool part={p} live={live} waiting={waiting} cut={cut} hold={hold} />;
    case "status":
      return <Status part={p} live={live} hold={hold} />;
    case "media":
      return <Media part={p} live={live} />;
  }
  return <Data part={p} hold={hold} />;
}
