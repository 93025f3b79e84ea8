// The words for what voice mode does.

import type { CallView } from "./call";
import type { SessionView } from "./session";
import type { TalkMode } from "./talk";

/** What the person sees at a glance. */
export type Phase = "connecting" | "ended" | "hearing" | "transcribing" | "speaking" | "thinking" | "muted" | "listening" | "ready";

/** Returns the phase. What the person does comes first, then what is audible, then what the gateway does. */
export function phaseOf(session: SessionView, call: CallView, mode: TalkMode): Phase {
  if (session.connection === "ended") return "ended";
  if (session.connection !== "open") return "connecting";
  if (call.isHearing) return "hearing";
  if (session.isPlaying || session.gateway === "speaking") return "speaking";
  if (session.isTranscribing) return "transcribing";
  if (session.gateway === "thinking") return "thinking";
  if (call.microphone !== "on") return "ready";
  if (call.isMuted) return "muted";
  return mode === "push" ? "ready" : "listening";
}

/** The word for each phase, and the shape of its dot. */
export const phases: Record<Phase, { word: string; dot: string }> = {
  connecting: { word: "Connecting…", dot: "running" },
  ended: { word: "Voice ended", dot: "" },
  hearing: { word: "Hearing you", dot: "done" },
  transcribing: { word: "Transcribing…", dot: "running" },
  speaking: { word: "Speaking", dot: "done" },
  thinking: { word: "Thinking…", dot: "running" },
  muted: { word: "Muted", dot: "" },
  listening: { word: "Listening", dot: "done" },
  ready: { word: "Ready", dot: "" },
};

/** Returns what the person can do now, for the line that otherwise has a caption. */
export function hint(phase: Phase, session: SessionView, call: CallView, mode: TalkMode): string {
  switch (phase) {
    case "listening":
      return "Speak when you’re ready.";
    case "hearing":
      return mode === "push" ? "Release the button to send." : "Pause to send.";
    case "muted":
      return "Your microphone is off.";
    case "ready":
      if (call.microphone === "asking") return "Allow the microphone in your browser.";
      if (call.microphone === "on" && mode === "push") return "Hold the button or the space bar to talk.";
      return session.hasSpeech ? "Type a message. The answer is spoken." : "Type a message.";
    default:
      return "";
  }
}
