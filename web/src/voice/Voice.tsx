// Voice mode: a panel above the composer, next to the text that it speaks and hears.

import { type RefObject, useEffect, useMemo, useRef, useState } from "react";

import { coarse } from "../chat/Composer";
import { stopReading } from "../chat/reading";
import { isAnswerSpoken } from "../chat/speaker";
import { type Action, ariaKeys, spelled, useActions } from "../keys";
import { useStore } from "../store";
import { Icon } from "../ui/Icon";
import { Call, talkMode } from "./call";
import { type DetectorFault, detectorFaults } from "./detector";
import { Meter } from "./Meter";
import { faults, type MicrophoneFault } from "./microphone";
import type { SessionView } from "./session";
import type { TalkMode } from "./talk";
import { TalkButton } from "./TalkButton";
import { hint, phaseOf, phases } from "./words";
import "./voice.css";

interface VoiceProps {
  conversation: string;
  close: () => void;
  /** Set to a function that silences the answer and reports whether it was audible, for messages that are typed meanwhile. */
  silenceRef: RefObject<(() => boolean) | undefined>;
}

export default function Voice({ conversation, close, silenceRef }: VoiceProps) {
  const [call, setCall] = useState<Call>();
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    stopReading();
    const created = new Call(conversation);
    // The audio devices are an external system.
    // eslint-disable-next-line react-hooks/set-state-in-effect
    setCall(created);
    silenceRef.current = () => {
      const { isAudible } = created.session;
      if (isAudible) created.session.interrupt();
      return isAudible;
    };
    return () => {
      silenceRef.current = undefined;
      created.close();
    };
  }, [conversation, attempt, silenceRef]);
  return (
    <section className="voice" aria-label="Voice mode">
      <div className="column">{call && <Panel key={attempt} call={call} close={close} restart={() => setAttempt((n) => n + 1)} />}</div>
    </section>
  );
}

function Panel({ call, close, restart }: { call: Call; close: () => void; restart: () => void }) {
  const { session } = call;
  const view = useStore(session.view);
  const audio = useStore(call.view);
  const mode = useStore(talkMode);
  const phase = phaseOf(view, audio, mode);
  const { word, dot } = phases[phase];
  const isOn = audio.microphone === "on";
  const isSpeaking = phase === "speaking";
  const panel = useRef<HTMLDivElement>(null);
  // The space bar talks, so the focus leaves the text. It returns if the person can only type.
  useEffect(() => panel.current?.focus({ preventScroll: true }), []);
  const mustType = view.connection === "open" && !view.hasRecognition;
  useEffect(() => {
    if (mustType && !coarse()) document.getElementById("composer")?.focus({ preventScroll: true });
  }, [mustType]);
  const speaks = view.connection === "open" && view.hasSpeech;
  useEffect(() => {
    isAnswerSpoken.set(speaks);
    return () => isAnswerSpoken.set(false);
  }, [speaks]);
  useActions(useMemo<Action[]>(() => (isSpeaking ? [{ group: "This conversation", name: "Stop speaking", key: "stop", run: () => session.interrupt() }] : []), [isSpeaking, session]));
  const speech = view.caption || view.transcript;
  return (
    <div className="panel" ref={panel} tabIndex={-1} data-phase={phase} data-mode={mode} data-detector={audio.detector}>
      <div className="row">
        <p className="phase"><span className={`dot ${dot}`} aria-hidden="true" /> {view.connection === "reconnecting" ? "Reconnecting…" : word}</p>
        {isOn && <Meter call={call} />}
        <div className="acts">
          {isSpeaking && <button type="button" className="quiet" title={`Stop speaking (${spelled("stop")})`} aria-label="Stop speaking" onClick={() => session.interrupt()}><Icon name="stop" /><span className="word">Stop</span></button>}
          {isOn && <button type="button" className="quiet" aria-pressed={audio.isMuted} aria-label="Mute microphone" title={audio.isMuted ? "Unmute microphone" : "Mute microphone"} onClick={() => call.mute(!audio.isMuted)}><Icon name={audio.isMuted ? "muted" : "microphone"} /><span className="word">{audio.isMuted ? "Muted" : "Mute"}</span></button>}
          <button type="button" className="quiet" aria-label="End voice mode" title={`End voice mode (${spelled("voice")})`} aria-keyshortcuts={ariaKeys("voice")} onClick={close}><Icon name="close" /></button>
        </div>
      </div>
      <p className={`caption ${speech ? "" : "muted"}`}>{speech || hint(phase, view, audio, mode)}</p>
      <Notices view={view} call={call} restart={restart} />
      {isOn && (
        <div className="row">
          <ModePicker mode={mode} />
          {mode === "push" && <TalkButton call={call} isHearing={audio.isHearing} disabled={audio.isMuted} />}
        </div>
      )}
    </div>
  );
}

const modes: Record<TalkMode, string> = { "hands-free": "Hands-free", push: "Push to talk" };

function ModePicker({ mode }: { mode: TalkMode }) {
  return (
    <fieldset className="modes">
      <legend className="unseen">How to talk</legend>
      {(Object.keys(modes) as TalkMode[]).map((m) => (
        <label key={m}><input type="radio" className="unseen" name="talk" checked={mode === m} onChange={() => talkMode.set(m)} /><span>{modes[m]}</span></label>
      ))}
    </fieldset>
  );
}

// What doesn't work, and what to do. Several things can be missing at once.
function Notices({ view, call, restart }: { view: SessionView; call: Call; restart: () => void }) {
  const { microphone, detector, isBlocked, isSilent } = useStore(call.view);
  const fault = microphone in faults ? faults[microphone as MicrophoneFault] : undefined;
  const detectorFault = detector in detectorFaults ? detectorFaults[detector as DetectorFault] : undefined;
  const isOpen = view.connection === "open";
  return (
    <div className="notices" role="status">
      {isOpen && !view.hasSpeech && <p><Icon name="warning" /> <span>No speech engine is configured at this gateway. Answers are shown, but not spoken.</span></p>}
      {isOpen && !view.hasRecognition && <p><Icon name="warning" /> <span>No speech recognition is configured at this gateway. Type your messages{view.hasSpeech ? "; answers are spoken" : ""}.</span></p>}
      {isSilent && <p><Icon name="warning" /> <span>This browser can’t play speech here. {faults.insecure.action}</span></p>}
      {isBlocked && !isSilent && <p><Icon name="warning" /> <span>The browser has blocked the sound.</span> <button type="button" onClick={() => call.resume()}>Turn on sound</button></p>}
      {fault && <p><Icon name="warning" /> <span>{fault.text} {fault.action}</span> {microphone !== "insecure" && <button type="button" onClick={() => void call.listen()}>Try again</button>}</p>}
      {detectorFault && <p><Icon name="warning" /> <span>{detectorFault} Voice mode detects speech by its loudness, so noise can start a message.</span> <button type="button" onClick={() => call.retryDetector()}>Try again</button></p>}
      {view.notice && <p><Icon name="warning" /> <span>{view.notice.text} {view.notice.action}</span> {view.connection === "ended" ? <button type="button" onClick={restart}>Restart</button> : <button type="button" className="quiet" aria-label="Dismiss" onClick={() => call.session.dismiss()}><Icon name="close" /></button>}</p>}
    </div>
  );
}
