import { expect, test } from "vitest";

import { maxBeats } from "./beats";
import { maxCommands, maxOutput, maxPieces } from "./commands";
import { maxInstalls } from "./installs";
import { news } from "./news";
import { type Activity, apply, type Input, emptyActivity } from "./state";
import { maxSteps, maxTrainings } from "./trainings";

const startTime = 1_000;

// play folds frames, one a millisecond from 2,000 on.
const play = (frames: readonly unknown[], from: Activity = emptyActivity) => frames.reduce<Activity>((a, f, i) => apply(a, f as Input, 2_000 + i, startTime), from);

const output = (event: string, fields: object = {}, runId = "r") => ({ type: "terminal-output", runId, event, ...fields });
const install = (phase: string, pluginName?: string, message = `${phase} it`) => ({ type: "install-progress", phase, message, ...(pluginName && { pluginName }) });
const signal = (kind: string, n: number, payload: unknown, fields: object = {}) => ({ type: kind, version: 1, eventId: `evt-${n}`, ts: 5_000 + n, payload, ...fields });
const beat = (n: number, payload: object, fields = {}) => signal("heartbeat_event", n, payload, fields);
const training = (n: number, payload: unknown, fields = {}) => signal("training_event", n, payload, fields);
const status = (fields: object) => ({ type: "status", state: "running", agentName: "eliza", startedAt: 7, ...fields });

test("reasons for a restart come from two frames, and end with the restart", () => {
  const pending = play([status({ uptime: 5 }), { type: "restart-required", reasons: ["hosts changed"] }]);
  expect(pending).toMatchObject({ reasons: ["hosts changed"], agent: "eliza", agentState: "running" });
  expect(play([status({ pendingRestart: true, pendingRestartReasons: ["hosts changed"] })], pending), "the same").toBe(pending);
  expect(play([{ type: "connected" }, status({ uptime: 9 })], pending).reasons, "the same process").toEqual(["hosts changed"]);
  expect(play([{ type: "connected" }, status({ uptime: 1, startedAt: 8 })], pending).reasons, "another one").toEqual([]);
  expect(play([status({ pendingRestart: false, pendingRestartReasons: [] })], pending).reasons).toEqual([]);
  expect(play([status({ state: "restarting" })], pending).agentState).toBe("restarting");
});

test("a command has its output by stream, and its end", () => {
  const ongoing = play([output("start", { command: "make", maxDurationMs: 9_000 }), output("stdout", { data: "a" }), output("stdout", { data: "b\n" }), output("stderr", { data: "bad\n" }), output("stdout", { data: "c" })]);
  expect(ongoing.commands).toEqual([{ id: "r", command: "make", state: "running", since: 2_000, limit: 9_000, isCut: false, pieces: [{ isError: false, text: "ab\n" }, { isError: true, text: "bad\n" }, { isError: false, text: "c" }] }]);
  expect(play([output("exit", { code: 0 })], ongoing)).toMatchObject({ commands: [{ state: "ended", code: 0 }], failures: 0 });
  expect(play([output("exit", { code: 2 })], ongoing)).toMatchObject({ commands: [{ state: "ended", code: 2 }], failures: 1 });
  expect(play([output("timeout", { maxDurationMs: 50 })], ongoing)).toMatchObject({ commands: [{ state: "timeout", limit: 50 }], failures: 1 });
  expect(play([output("error", { data: "spawn ENOENT" })], ongoing)).toMatchObject({ commands: [{ state: "error", error: "spawn ENOENT" }], failures: 1 });
  expect(play([output("stdout", { data: "late" }, "other")]).commands[0], "begun before the page").toMatchObject({ id: "other", state: "running" });
});

test("a lost connection makes ends unknown, and later frames make them known", () => {
  for (const gap of [{ type: "connected" }, { type: "resync", missed: 3 }]) {
    const a = play([output("start", { command: "make" }), install("resolving"), gap]);
    expect([a.commands[0]!.state, a.installs[0]!.state, a.failures]).toEqual(["unknown", "unknown", 0]);
    const b = play([output("stdout", { data: "on" }), install("validating", "weather")], a);
    expect([b.commands[0]!.state, b.installs[0]!.state, b.installs.length]).toEqual(["running", "running", 1]);
  }
});

test("an installation gets its name later, and ends", () => {
  const ongoing = play([install("resolving"), install("downloading", "weather")]);
  expect(ongoing.installs).toMatchObject([{ plugin: "weather", phase: "downloading", state: "running", message: "downloading it" }]);
  expect(play([install("complete", "weather")], ongoing)).toMatchObject({ installs: [{ state: "done" }], failures: 0 });
  const failed = play([install("error", "weather", "validating: no manifest")], ongoing);
  expect(failed).toMatchObject({ installs: [{ state: "failed", message: "validating: no manifest" }], failures: 1 });
  expect(play([install("resolving", "weather"), install("complete", "weather")], failed)).toMatchObject({ installs: [{ state: "done" }, { state: "failed" }], failures: 1 });
});

test("trainings are grouped by run", () => {
  const a = play([training(1, { phase: "loading" }), training(2, { phase: "training", progress: 0.45, message: "Training epoch 5/10" }), training(3, { value: 7 }, { runId: "b" })]);
  expect(a.trainings).toMatchObject([{ id: "b", message: "7", state: "running" }, { id: "", phase: "training", progress: 0.45, message: "Training epoch 5/10", steps: [{ event: "evt-2" }, { event: "evt-1" }] }]);
  expect(play([training(4, { phase: "complete" })], a).trainings[0]).toMatchObject({ state: "done", progress: 1 });
  expect(play([training(4, { phase: "error", message: "out of memory" })], a)).toMatchObject({ failures: 1, trainings: [{ state: "failed" }, {}] });
  expect(play([{ ...training(4, { phase: "error" }), ts: 900 }], a).failures, "it was replayed").toBe(0);
  expect(play([training(5, { progress: 80 })], a).trainings[0]!.progress, "a percentage").toBe(0.8);
  expect(play([training(2, { phase: "again" })], a), "a repetition").toBe(a);
});

test("heartbeats are listed unless they are silent, one for each conversation", () => {
  const a = play([
    beat(1, { status: "thinking", to: "discord", preview: "Composing reply...", durationMs: 1500, hasMedia: false, indicatorType: "typing" }), beat(2, { status: "asleep", silent: true }),
    beat(3, { status: "thinking" }, { roomId: "c" }), beat(4, { status: "replying", preview: "Well" }, { roomId: "c" }),
    signal("agent_event", 5, { text: "I look around." }, { stream: "autonomy" }), signal("agent_event", 6, {}, { stream: "tool", roomId: "c" }),
  ]);
  expect(a.beats).toMatchObject([
    { id: "evt-5", status: "autonomy", preview: "I look around." }, { id: "evt-4", status: "replying", conversation: "c" },
    { id: "evt-1", status: "thinking", channel: "discord", preview: "Composing reply...", duration: 1500, isTyping: true },
  ]);
  expect(a.beats).toHaveLength(3);
});

test("an emote is shown each time", () => {
  const wave = { type: "emote", emoteId: "wave", glbPath: "/emotes/wave.glb", duration: 2, loop: false };
  const a = play([wave]);
  expect(a.emote).toEqual({ number: 1, emoteId: "wave", duration: 2_000, isLoop: false });
  expect(play([wave], a).emote!.number).toBe(2);
});

test("unknown and malformed frames change nothing", () => {
  const before = play([output("start", { command: "make" }), install("resolving"), training(1, { phase: "a" }), beat(2, { status: "thinking" }), status({})]);
  const frames: unknown[] = [
    null, 7, "x", [], {}, { type: "surprise" }, { type: 9 }, { type: "restart-required" }, { type: "restart-required", reasons: [1] }, { type: "restart-required", reasons: "no" },
    { type: "terminal-output" }, output("stdout"), output("stdout", { data: {} }), output("surprise"), { type: "install-progress" }, { type: "install-progress", phase: {} },
    training(3, "text"), { ...training(3, {}), eventId: 3 }, { ...training(3, {}), ts: "now" }, beat(4, {}), beat(5, [] as object), { ...beat(6, { status: "x" }), ts: null },
    { type: "emote" }, { type: "emote", emoteId: "wave" }, { type: "emote", emoteId: 5, duration: 2 }, { type: "emote", emoteId: "wave", duration: -1 }, { type: "status" }, { type: "status", state: 5, agentName: {}, pendingRestartReasons: [{}] },
  ];
  for (const f of frames) expect(play([f], before), JSON.stringify(f)).toBe(before);
});

test("all lists are bounded", () => {
  const repeat = (n: number, f: (i: number) => unknown) => play(Array.from({ length: n }, (_, i) => f(i)));
  const commands = repeat(3 * maxCommands, (i) => output("start", { command: `c${i}` }, `r${i}`)).commands;
  expect(commands).toHaveLength(maxCommands);
  expect(commands[0]!.command).toBe(`c${3 * maxCommands - 1}`);
  expect(repeat(2 * maxInstalls, () => install("resolving", "p")).installs).toHaveLength(maxInstalls);
  expect(repeat(2 * maxTrainings, (i) => training(i, {}, { runId: `t${i}` })).trainings).toHaveLength(maxTrainings);
  expect(repeat(2 * maxSteps, (i) => training(i, { phase: "p" })).trainings[0]!.steps).toHaveLength(maxSteps);
  expect(repeat(2 * maxBeats, (i) => beat(i, { status: "s" })).beats).toHaveLength(maxBeats);
  const command = repeat(40, (i) => output("stdout", { data: `${i} ${"x".repeat(4_000)}\n` })).commands[0]!;
  const text = command.pieces.map((p) => p.text).join("");
  expect(text.length).toBeLessThanOrEqual(maxOutput);
  expect(text, "it begins with a whole line").toMatch(/^\d+ x/);
  expect(text).toMatch(/\n39 x+\n$/);
  expect(command.isCut).toBe(true);
  expect(repeat(1, () => output("stdout", { data: "y".repeat(3 * maxOutput) })).commands[0]!.pieces[0]!.text, "one long line").toHaveLength(maxOutput);
  expect(repeat(4 * maxPieces, (i) => output(i % 2 ? "stdout" : "stderr", { data: "z" })).commands[0]!.pieces).toHaveLength(maxPieces);
  expect(play([beat(1, { status: "s", preview: "p".repeat(10_000) })]).beats[0]!.preview.length).toBeLessThan(600);
});

test("ends and reasons are announced once, output is not", () => {
  const announcements: string[] = [];
  let a = emptyActivity;
  for (const f of [
    output("start", { command: "make all" }), output("stdout", { data: "x" }), output("exit", { code: 2 }), install("resolving"), install("downloading", "weather"), install("complete", "weather"),
    { type: "restart-required", reasons: ["hosts changed"] }, { type: "restart-required", reasons: ["hosts changed"] }, training(1, { phase: "training" }), training(2, { phase: "complete" }), beat(3, { status: "s" }),
  ]) {
    const next = play([f], a);
    announcements.push(...news(a, next, true));
    a = next;
  }
  expect(announcements).toEqual(["Command failed: make all, exit code 2.", "Plugin weather is installed.", "Restart needed: hosts changed.", "Training complete."]);
  expect(news(emptyActivity, play([{ type: "restart-required", reasons: ["hosts changed"] }]), false), "users can't restart it").toEqual([]);
});
