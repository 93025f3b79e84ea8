// One conversation, or one that doesn't exist yet: header, log and composer. The component stays the same when a new conversation
// is created, so that drafts and focus are kept.

import { type Agent, independent, type Message as ChatMessage, type NewMessage } from "@leat/client";
import { lazy, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";

import { theClient, theLive } from "../gateway";
import { note } from "../inspector/shown";
import { type Action, ariaKeys, spelled, useActions } from "../keys";
import { layer } from "../layers";
import { list } from "../list";
import { open, route } from "../route";
import { useStore } from "../store";
import { Icon } from "../ui/Icon";
import { LazyPart } from "../ui/LazyPart";
import type { MenuItem } from "../ui/Menu";
import { useBelow, useEscape, useNarrow } from "../ui/over";
import { AgentPicker, useAgentChoice } from "./AgentPicker";
import { hush, useAnnouncer } from "./announce";
import { choose, unsteerable, useChosen } from "./chosen";
import { coarse, Composer, type Insertion, type Submission, textOf } from "./Composer";
import { Connection } from "./Connection";
import { draft } from "./draft";
import { exportJSON, exportMarkdown } from "./export";
import { useFocusKept } from "./focus";
import { HeaderMenu } from "./HeaderMenu";
import { Log } from "./Log";
import { stopReading } from "./reading";
import { TurnNotice, useStop } from "./TurnNotice";
import { type Removal, Undo, undoTime } from "./Undo";
import { say } from "./speaker";
import { useConversation } from "./useConversation";

const Inspector = lazy(() => import("../inspector/Inspector"));
const Find = lazy(() => import("../find/Find"));
const Voice = lazy(() => import("../voice/Voice"));

const noItems: readonly MenuItem[] = [];

interface ChatProps {
  id: string; // "" for a new one
  newId: string; // the id that a new conversation will have
  attaches: boolean; // an operator can attach sessions of an agent
  openRail: () => void;
}

export function Chat({ id, newId, attaches, openRail }: ChatProps) {
  const exists = id !== "";
  const { conversation, state } = useConversation(id || newId, exists);
  const [editing, setEditing] = useState<ChatMessage>();
  const [inspected, setInspected] = useState("");
  const [insertion, setGiven] = useState<Insertion>();
  const [error, setError] = useState("");
  const [finding, setFinding] = useState(false);
  const [isVoiceOn, setVoiceOn] = useState(false);
  const silenceVoice = useRef<() => boolean>(undefined);
  const opener = useRef<Element | null>(null);
  const restoreFocus = useRef(false);
  const { conversations, agents } = useStore(list);
  const agent = conversations.find((c) => c.id === id)?.agent ?? "";
  const choice = useChosen(id);
  const mute = useStore(unsteerable);
  useEffect(() => (exists ? note(conversation) : undefined), [conversation, exists]);
  const at = useStore(route);
  const routeTurn = at.view === "chat" ? at.turn : "";
  const [routedTurn, setRoutedTurn] = useState("");
  if (routedTurn !== routeTurn) {
    setRoutedTurn(routeTurn);
    if (routeTurn) setInspected(routeTurn);
  }
  const leave = useCallback(() => {
    restoreFocus.current = true;
    setInspected("");
    if (routeTurn) open(id, "replace");
  }, [routeTurn, id]);
  const turn = state.turns.find((t) => t.id === inspected);
  const openTurns = state.turns.filter((t) => t.state !== "ended" && independent(t));
  const current = openTurns.find((t) => t.state !== "queued" && !t.source); // a queued message waits for this turn
  const next = choice || agent || agents.find((a) => a.default)?.name || "";
  const steers = !!current && current.agent === next && !!agents.find((a) => a.name === next)?.steers && !mute.has(next);
  useAnnouncer(state);
  useEffect(() => {
    document.title = id ? `${openTurns.length > 0 ? "… " : ""}${state.title || "Conversation"} – Leat` : "Leat";
  }, [id, state.title, openTurns.length]);
  useLook(id);
  const talk = useRef<HTMLDivElement>(null);
  useFocusKept(talk);
  const isOverlay = useNarrow() && !!turn;
  useBelow(isOverlay, talk);
  useEscape(isOverlay, leave);
  // When the inspector closes, the focus returns to the control that opened it.
  useLayoutEffect(() => {
    if (turn || !restoreFocus.current) return;
    restoreFocus.current = false;
    const from = opener.current as HTMLElement | null;
    if (from?.isConnected) from.focus();
    else if (!coarse()) document.getElementById("composer")?.focus({ preventScroll: true });
  }, [turn]);
  const stopping = useStop(conversation, state);
  const { stop } = stopping;
  const inspect = useCallback((t: string) => {
    opener.current = document.activeElement;
    setInspected(t);
  }, []);
  const change = useCallback((m: ChatMessage) => setGiven({ text: textOf(m), media: m.parts.filter((p) => p.kind === "media") }), []);
  const prepared = useRef<{ agent: string; made: Promise<string> }>(undefined);
  const prepare = useCallback(() => {
    prepared.current ??= { agent: choice, made: theClient().create({ id: newId, key: newId, ...(choice && { agent: choice }) }).then((c) => c.id) };
    return prepared.current.made.catch((err) => {
      prepared.current = undefined; // the next attempt creates it again
      throw err;
    });
  }, [choice, newId]);
  const endVoice = useCallback(() => {
    setVoiceOn(false);
    if (!coarse()) document.getElementById("composer")?.focus({ preventScroll: true });
  }, []);
  const toggleVoice = useCallback(() => {
    setError("");
    if (isVoiceOn) endVoice();
    else if (exists) setVoiceOn(true);
    else {
      // A voice connection belongs to a conversation, so it begins before the first message.
      prepare().then(() => {
        choose("", "");
        open(newId, "replace");
        setVoiceOn(true);
      }).catch((err: Error) => setError(err.message));
    }
  }, [isVoiceOn, exists, endVoice, prepare, newId]);
  useEffect(() => stopReading, [id]);
  const send = async ({ message, mode: chosenMode }: Submission) => {
    setError("");
    hush();
    // A typed message interrupts a spoken answer, like speech does.
    const mode = silenceVoice.current?.() && current ? "instead" : chosenMode;
    if (!exists) {
      // A conversation created for an upload has the agent that was selected then. This message names the agent that is selected
      // now.
      const creator = prepared.current?.agent ?? choice;
      theClient().begin(message, { id: newId, ...(creator && { agent: creator }) }, creator !== choice && next ? { agent: next } : {});
      choose("", "");
      if (creator !== choice) choose(newId, next);
      open(newId, "replace");
      return;
    }
    const options = choice && choice !== agent ? { agent: choice } : {};
    // The stop is stored with the message, so without a connection both wait, also across a reload.
    const stays = mode === "instead" || mode === "queue" && steers;
    const ack = await conversation.send(message, { ...options, ...(stays && { queue: true }), ...(mode === "instead" && current && { stop: current.id }) });
    if (ack.state === "steered") say("Added to the current answer.");
    if (ack.state !== "queued") return;
    if (mode !== "instead") say("Queued until the current answer ends.");
    if (mode === "steer" && current?.agent) unsteerable.change((agentNames) => new Set([...agentNames, current.agent!]));
  };
  const [removal, setRemoval] = useState<Removal>();
  const closeUndo = useCallback(() => setRemoval(undefined), []);
  const resend = useCallback(async (of: string, message?: NewMessage) => {
    setError("");
    hush();
    try {
      const text = message ? "Your earlier message and its answer were removed." : "The earlier answer was removed.";
      const onRemoval = (seq: number) => setRemoval({ seq, text, until: Date.now() + undoTime });
      await conversation.resend(of, message, { onRemoval, ...(choice && choice !== agent && { agent: choice }) });
    } catch (err) {
      if (!message) setError((err as Error).message); // an edited message shows its own error
      throw err;
    }
  }, [conversation, choice, agent]);
  const hasRequest = state.turns.some((t) => t.state === "waiting");
  const lastOwn = state.messages.findLast((m) => m.role === "user");
  useActions(useMemo<Action[]>(() => {
    const group = "This conversation";
    return [
      ...(openTurns.length > 0 ? [{ group, name: "Stop the answer", key: "stop" as const, run: stop }] : []),
      ...(hasRequest ? [{ group, name: "Go to the pending request", key: "approval" as const, run: toRequest }] : []),
      ...(state.phase !== "gone" ? [{ group, name: isVoiceOn ? "End voice mode" : "Start voice mode", key: "voice" as const, run: toggleVoice }] : []),
      ...(exists && state.phase !== "gone" ? [
        { group, name: "Find in the whole conversation", key: "find" as const, hint: "the browser’s find covers only a part", run: () => { setFinding(true); document.querySelector<HTMLElement>(".find input")?.focus(); } },
        ...(lastOwn && openTurns.length === 0 ? [{ group, name: "Edit my last message", run: () => setEditing(lastOwn) }, { group, name: "Send my last message again", run: () => void resend(lastOwn.id).catch(() => {}) }] : []),
        { group, name: "Save as Markdown", run: () => void exportMarkdown(conversation).catch((err: Error) => setError(err.message)) },
        { group, name: "Save as JSON", run: () => void exportJSON(conversation).catch((err: Error) => setError(err.message)) },
        ...(agents.length > 1 ? agents.filter((a) => a.name !== next).map((a) => ({ group, name: `Switch to ${a.name}`, run: () => choose(id, a.name === agent || !agent && a.default ? "" : a.name) })) : []),
      ] : []),
    ];
  }, [openTurns.length, hasRequest, exists, state.phase, lastOwn, conversation, resend, agents, next, agent, id, stop, isVoiceOn, toggleVoice]));
  const isGone = exists && state.phase === "gone";
  const save = (write: typeof exportJSON) => void write(conversation).catch((err: Error) => setError(err.message));
  const agentChoice = useAgentChoice(id, agent);
  const nextAgent = agents.find((a) => a.name === next);
  const suggestions = nextAgent?.suggestions?.slice(0, maxSuggestions) ?? [];
  const headerItems: MenuItem[] = [
    { name: "Find in the conversation", icon: "search", run: () => setFinding(true) },
    ...(current && turn?.id !== current.id ? [{ name: "Inspect the current answer", icon: "wave" as const, run: () => inspect(current.id) }] : []),
    { name: "Save as Markdown", icon: "save", run: () => save(exportMarkdown) },
    { name: "Save as JSON", icon: "file", run: () => save(exportJSON) },
  ];
  const deleted = isGone && (state.error?.reason === "deleted" || state.error?.reason === "not_found");
  useEffect(() => {
    if (deleted) draft.forget(id);
  }, [deleted, id]);
  return (
    <main id="main" className="chat" tabIndex={-1}>
      <div className="talk" ref={talk} data-empty={!id || undefined}>
        <header className="top">
          <button type="button" className="quiet only-narrow rail-opener" aria-label="Conversations" onClick={openRail}><Icon name="menu" /></button>
          <h1 title={state.title}>{isGone ? "Leat" : state.title || "New conversation"}</h1>
          {!isGone && <AgentPicker choice={agentChoice} />}
          {exists && !isGone && (
            <span className="menu">
              {current && <button type="button" className="quiet" aria-label="Inspect the current answer" title="Inspect the current answer" aria-expanded={turn?.id === current.id} onClick={() => (turn?.id === current.id ? leave() : inspect(current.id))}><Icon name="wave" /></button>}
              <button type="button" className="quiet" aria-label="Find in the conversation" title={`Find in the conversation (${spelled("find")})`} aria-keyshortcuts={ariaKeys("find")} onClick={() => setFinding(true)}><Icon name="search" /></button>
              <button type="button" className="quiet" aria-label="Save as Markdown" title="Save as Markdown" onClick={() => save(exportMarkdown)}><Icon name="save" /></button>
              <button type="button" className="quiet" aria-label="Save as JSON" title="Save as JSON" onClick={() => save(exportJSON)}><Icon name="file" /></button>
            </span>
          )}
          <Connection behind={state.behind} />
          {!isGone && <HeaderMenu choice={agentChoice} items={exists ? headerItems : noItems} />}
        </header>
        {finding && <LazyPart of={id}><Find conversation={conversation} state={state} close={() => setFinding(false)} /></LazyPart>}
        {error && <p className="bad column" role="alert">{error}</p>}
        {isGone ? (
          <div className="alone"><p>{state.error?.reason === "deleted" ? "This conversation was deleted." : state.error?.reason === "not_found" || !state.error ? "Conversation not found, or you don’t have access." : state.error.message}</p>
            <button type="button" onClick={() => open("", "replace")}>New conversation</button></div>
        ) : id ? (
          <Log conversation={conversation} state={state} editing={editing?.id ?? ""} edit={setEditing} resend={resend} change={change} inspect={inspect} />
        ) : (
          <Welcome agent={nextAgent} attaches={attaches} />
        )}
        {!isGone && removal && <Undo key={removal.seq} conversation={conversation} removal={removal} close={closeUndo} fail={setError} />}
        {!isGone && <TurnNotice conversation={conversation} state={state} stop={stopping} />}
        {exists && !isGone && isVoiceOn && <LazyPart of={id}><Voice conversation={id} close={endVoice} silenceRef={silenceVoice} /></LazyPart>}
        {!isGone && <Composer conversation={id} agent={next} prepare={prepare} insertion={insertion} running={openTurns.length > 0} steers={steers} send={send} stop={stop} last={() => lastOwn} edit={setEditing} isVoiceOn={isVoiceOn} toggleVoice={toggleVoice} />}
        {!id && suggestions.length > 0 && (
          <ul className="suggestions column" aria-label="Suggestions">{suggestions.map((text) => <li key={text}><button type="button" onClick={() => void send({ message: { text }, mode: "steer" })}>{text}</button></li>)}</ul>
        )}
      </div>
      {isOverlay && <div className="shade below" onClick={leave} />}
      {turn && (
        <LazyPart of={turn.id} fallback={<aside className="inspector" aria-busy="true" />}>
          <Inspector key={turn.id} conversation={conversation} turn={turn} close={leave} />
        </LazyPart>
      )}
    </main>
  );
}

// Tells the gateway which conversation is visible. It marks its messages as read on all devices, and directs unasked messages of
// agents to it.
function useLook(id: string): void {
  useEffect(() => {
    if (!id) return;
    const update = () => theLive().setActiveConversation(document.hidden ? undefined : id);
    update();
    document.addEventListener("visibilitychange", update);
    return () => {
      document.removeEventListener("visibilitychange", update);
      theLive().setActiveConversation(undefined);
    };
  }, [id]);
}

function toRequest(): void {
  const ask = document.querySelector<HTMLElement>(".ask");
  if (!ask) return;
  ask.scrollIntoView({ block: "nearest" });
  ask.querySelector<HTMLElement>("button, input, select, textarea")?.focus();
}

/** What an empty conversation shows above the composer: the agent's description. */
function Welcome({ agent, attaches }: { agent: Agent | undefined; attaches: boolean }) {
  return (
    <div className="welcome column">
      <h2>How can I help?</h2>
      {agent?.description && <p className="muted">{agent.description}</p>}
      {attaches && <button type="button" className="link" onClick={() => layer.set("attach")}>Attach a session…</button>}
    </div>
  );
}

/** The number of suggestions that an empty conversation shows. */
const maxSuggestions = 4;
