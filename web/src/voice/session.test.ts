import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import type { Socket } from "./link";
import { Session } from "./session";

class FakeSocket implements Socket {
  readyState = 0;
  binaryType: BinaryType = "blob";
  onopen: Socket["onopen"] = null;
  onmessage: Socket["onmessage"] = null;
  onclose: Socket["onclose"] = null;
  outgoing: unknown[] = [];
  closedWith = 0;

  constructor(readonly after: string) {}

  send = (data: unknown) => void this.outgoing.push(typeof data === "string" ? JSON.parse(data) : data);
  close = (code?: number) => { this.closedWith = code ?? 1005; };

  accept(ready: object = {}): this {
    this.readyState = 1;
    this.onopen?.call(this as never, {} as Event);
    this.text({ type: "ready", generation: 1, speech: true, recognition: true, ...ready });
    return this;
  }

  text(frame: object): void {
    this.onmessage?.call(this as never, { data: JSON.stringify(frame) } as MessageEvent);
  }

  audio(samples: number): void {
    this.onmessage?.call(this as never, { data: new ArrayBuffer(samples * 2) } as MessageEvent);
  }

  flush(): void {
    this.onmessage?.call(this as never, { data: new ArrayBuffer(1) } as MessageEvent);
  }

  lose(code = 1006): void {
    this.readyState = 3;
    this.onclose?.call(this as never, { code } as CloseEvent);
  }
}

function setup() {
  const sockets: FakeSocket[] = [];
  const played: (string | number)[] = [];
  const player = {
    push: (pcm: ArrayBuffer) => void played.push(pcm.byteLength / 2), complete: () => void played.push("complete"), interrupt: () => void played.push("interrupt"),
    flush: () => void played.push("flush"), reset: () => void played.push("reset"),
  };
  const session = new Session(player, (after) => {
    const s = new FakeSocket(after);
    sockets.push(s);
    return s;
  });
  session.open();
  return { session, sockets, played, view: () => session.view.get() };
}

const caption = (sample: number, text: string, start = 0, generation = 1) => ({ type: "caption", turn: "t1", start, end: start + text.length, sample, generation, text });

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("a voice session", () => {
  it("plays an answer with captions in step, and reports what was played", () => {
    const { session, sockets, played, view } = setup();
    const s = sockets[0]!.accept();
    expect(s.binaryType).toBe("arraybuffer");
    s.text({ type: "state", state: "thinking", generation: 1, turn: "t1" });
    expect(view().gateway).toBe("thinking");
    s.text({ type: "state", state: "speaking", generation: 1, turn: "t1" });
    s.text(caption(0, "First."));
    s.audio(24_000);
    s.text(caption(24_000, "Second.", 7));
    s.audio(24_000);
    session.report({ played: 0, state: "buffering" });
    expect(view()).toMatchObject({ isPlaying: true, caption: "First." });
    session.report({ played: 23_999, state: "playing" });
    expect(view().caption).toBe("First.");
    session.report({ played: 24_000, state: "playing" });
    expect(view().caption).toBe("Second.");
    s.text({ type: "stream_done", generation: 1, samples: 48_000, turn: "t1" });
    s.text({ type: "state", state: "listening", generation: 1 });
    expect(view()).toMatchObject({ gateway: "listening", isPlaying: true });
    session.report({ played: 48_000, state: "idle" });
    expect(view()).toMatchObject({ isPlaying: false, caption: "" });
    expect(played).toEqual([24_000, 24_000, "complete", "complete"]);
    expect(s.outgoing).toEqual([23_999, 48_000].map((samples) => ({ type: "played", samples, generation: 1 })));
  });

  it("interrupts at once, ignores the rest of the answer, and starts the next generation clean", () => {
    const { session, sockets, played, view } = setup();
    const s = sockets[0]!.accept();
    s.text({ type: "state", state: "speaking", generation: 1, turn: "t1" });
    s.text(caption(0, "Old."));
    s.audio(48_000);
    session.report({ played: 6000, state: "playing" });
    expect(session.isAudible).toBe(true);
    session.begin();
    expect(s.outgoing).toEqual([{ type: "interrupt", played: 6000, generation: 1 }, { type: "start" }]);
    expect(played).toEqual([48_000, "interrupt"]);
    session.interrupt(); // once is enough
    s.audio(960);
    s.text(caption(48_000, "Stale."));
    session.report({ played: 6000, state: "idle" });
    expect(s.outgoing.length).toBe(2);
    s.flush();
    s.text({ type: "state", state: "listening", generation: 2 });
    s.text({ type: "state", state: "speaking", generation: 2, turn: "t2" });
    s.text(caption(0, "New.", 0, 2));
    s.audio(24_000);
    session.report({ played: 100, state: "playing" });
    expect(view().caption).toBe("New.");
    session.interrupt();
    expect(s.outgoing.at(-1)).toEqual({ type: "interrupt", played: 100, generation: 2 });
    expect(played).toEqual([48_000, "interrupt", "flush", "complete", 24_000, "interrupt"]);
  });

  it("stops an agent that works on an answer only for a deliberate utterance", () => {
    const { session, sockets } = setup();
    const s = sockets[0]!.accept();
    s.text({ type: "state", state: "thinking", generation: 1, turn: "t1" });
    session.begin();
    expect(s.outgoing).toEqual([{ type: "start" }]);
    session.begin(true);
    expect(s.outgoing.slice(1)).toEqual([{ type: "interrupt", played: 0, generation: 1 }, { type: "start" }]);
  });

  it("drops its queue when the gateway flushes without being asked", () => {
    const { session, sockets, played, view } = setup();
    const s = sockets[0]!.accept();
    s.text(caption(0, "Old."));
    s.audio(48_000);
    session.report({ played: 6000, state: "playing" });
    s.flush();
    expect(played).toEqual([48_000, "flush"]);
    expect(view()).toMatchObject({ isPlaying: false, caption: "" });
    expect(session.isAudible).toBe(false);
  });

  it("resumes after the last sample it has received, and keeps playing meanwhile", () => {
    const { session, sockets, played, view } = setup();
    sockets[0]!.accept().text(caption(0, "One."));
    sockets[0]!.audio(10_000);
    sockets[0]!.text(caption(10_000, "Two.", 5));
    sockets[0]!.audio(4000);
    sockets[0]!.text(caption(14_000, "Three.", 10)); // its audio didn't arrive
    session.report({ played: 2000, state: "playing" });
    sockets[0]!.lose(1012);
    expect(view()).toMatchObject({ connection: "reconnecting", isPlaying: true, caption: "One." });
    vi.advanceTimersByTime(1000);
    expect(sockets[1]!.after).toBe("t1:5:4000");
    sockets[1]!.accept();
    expect(view().connection).toBe("open");
    sockets[1]!.text(caption(6000, "Three.", 10));
    sockets[1]!.audio(12_000);
    session.report({ played: 14_000 + 5000, state: "playing" });
    expect(view().caption).toBe("Two.");
    session.report({ played: 14_000 + 6000, state: "playing" });
    expect(view().caption).toBe("Three.");
    session.interrupt();
    expect(sockets[1]!.outgoing.at(-1)).toEqual({ type: "interrupt", played: 6000, generation: 1 });
    expect(played).toEqual([10_000, 4000, 12_000, "interrupt"]);
  });

  it("repeats an interrupt that the lost connection didn't answer", () => {
    const { session, sockets, played } = setup();
    const s = sockets[0]!.accept();
    s.audio(48_000);
    session.report({ played: 6000, state: "playing" });
    session.interrupt();
    s.lose();
    vi.advanceTimersByTime(1000);
    expect(sockets[1]!.after).toBe("");
    sockets[1]!.accept({ generation: 4 });
    expect(sockets[1]!.outgoing).toEqual([{ type: "interrupt", played: 0, generation: 4 }]);
    sockets[1]!.audio(960);
    sockets[1]!.flush();
    sockets[1]!.audio(1920);
    expect(played).toEqual([48_000, "interrupt", "reset", "interrupt", "flush", 1920]);
  });

  it("reconnects more and more slowly, and stops when it is closed", () => {
    const { session, sockets } = setup();
    for (let i = 0; i < 8; i++) {
      sockets.at(-1)!.lose();
      vi.advanceTimersByTime(10_000);
    }
    expect(sockets.length).toBe(9);
    sockets.at(-1)!.lose();
    vi.advanceTimersByTime(5000);
    expect(sockets.length).toBe(9);
    session.close();
    vi.advanceTimersByTime(60_000);
    expect(sockets.length).toBe(9);
  });

  it("gives up a connection that is silent and doesn't answer a ping", () => {
    const { sockets, view } = setup();
    const s = sockets[0]!.accept();
    vi.advanceTimersByTime(16_000);
    expect(s.outgoing).toEqual([{ type: "ping" }]);
    s.text({ type: "pong" });
    vi.advanceTimersByTime(16_000);
    expect(view().connection).toBe("open");
    vi.advanceTimersByTime(30_000);
    expect(s.closedWith).toBe(4000);
    expect(sockets.length).toBeGreaterThan(1);
  });

  it.each([[4009, "replaced"], [4008, "idle"], [1013, "busy"], [4001, "expired"], [1008, "forbidden"]])("ends with a reason after close code %d, without reconnecting", (code, reason) => {
    const { sockets, view } = setup();
    sockets[0]!.accept().lose(code);
    vi.advanceTimersByTime(60_000);
    expect(view()).toMatchObject({ connection: "ended", notice: { code: reason } });
    expect(view().notice!.text).not.toBe("");
    expect(sockets.length).toBe(1);
  });

  it("shows errors with what to do, and prefers the gateway's words for the end", () => {
    const { sockets, view } = setup();
    const s = sockets[0]!.accept();
    s.text({ type: "error", code: "idle", message: "No sound for ten minutes.", action: "Start voice mode again." });
    s.lose(4008);
    expect(view().notice).toEqual({ code: "idle", text: "No sound for ten minutes.", action: "Start voice mode again." });
  });

  it("shows what the person says until the agent works on it", () => {
    const { session, sockets, view } = setup();
    const s = sockets[0]!.accept();
    session.begin();
    session.speak(new ArrayBuffer(640));
    s.text({ type: "transcript", text: "What is", final: false });
    expect(view().transcript).toBe("What is");
    session.finish();
    expect(view().isTranscribing).toBe(true);
    s.text({ type: "transcript", text: "What is the time?", final: true, message: "m1" });
    expect(view()).toMatchObject({ transcript: "What is the time?", isTranscribing: false });
    s.text({ type: "state", state: "thinking", generation: 1, turn: "t1" });
    expect(view().transcript).toBe("");
    expect(s.outgoing).toEqual([{ type: "start" }, new ArrayBuffer(640), { type: "stop" }]);
    session.begin();
    session.finish();
    s.text({ type: "transcript", text: "", final: true });
    expect(view().notice?.code).toBe("silence");
  });

  it.each([["an odd frame", new ArrayBuffer(3)], ["text that isn't JSON", "{"]])("gives up a connection with %s", (_, data) => {
    const { sockets } = setup();
    const s = sockets[0]!.accept();
    s.onmessage!.call(s as never, { data } as MessageEvent);
    expect(s.closedWith).toBe(4400);
    vi.advanceTimersByTime(1000);
    expect(sockets.length).toBe(2);
  });

  it("ignores frames of a newer gateway", () => {
    const { sockets, view } = setup();
    const s = sockets[0]!.accept();
    const before = view();
    s.text({ type: "mood", value: 7 });
    expect(view()).toBe(before);
  });
});
