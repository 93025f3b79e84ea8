import type { Event } from "@leat/client";
import { expect, test } from "vitest";

import { attributesOf, traceJSON } from "./export";
import { EventFold } from "./fold";
import { allSpans, around, countOf, hitsOf, longestPause, nextHit, rowsOf, ticksOf } from "./rows";
import { type Span, spansOf } from "./spans";

/** Numbers events: each is its time after the turn's start, its type and its fields. */
type Line = [at: number, type: string, fields?: Record<string, unknown>];
const eventsOf = (lines: readonly Line[], from = 1): Event[] => lines.map(([at, type, fields], i) => ({ seq: from + i, at: 1000 + at, turn: "t", ...(/^(part|message)/.test(type) && { message: "m" }), type, ...fields }) as unknown as Event);

const begin: Line[] = [[0, "turn.start", { agent: "ops" }], [0, "message.start", { role: "assistant" }]];
const part = (at: number, id: string, kind: string, fields = {}): Line => [at, "part.start", { part: id, kind, ...fields }];
const add = (at: number, id: string, text: string, fields = {}): Line => [at, "part.append", { part: id, offset: 0, text, ...fields }];
const end = (at: number, id: string): Line => [at, "part.end", { part: id, sums: { text: { length: 1, crc: 1 } } }];
const update = (at: number, id: string, state: string, fields = {}): Line => [at, "part.update", { part: id, state, ...fields }];
const endTurn = (at: number, outcome = "completed", fields = {}): Line => [at, "turn.end", { outcome, ...fields }];

/** Describes a tree: a line for each span with its name, state, start and end, and its first output. */
function draw(root: Span | undefined): string[] {
  const lines: string[] = [];
  const show = (s: Span, depth: number) => {
    lines.push(`${"  ".repeat(depth)}${s.kind === "tool" || s.kind === "turn" || s.kind === "question" ? `${s.kind} ` : ""}${s.name} ${s.state} ${s.start - 1000}-${s.end === undefined ? "" : s.end - 1000}${s.first === undefined ? "" : ` first ${s.first - 1000}`}`);
    s.children.forEach((c) => show(c, depth + 1));
  };
  if (root) show(root, 0);
  return lines;
}
const treeOf = (lines: readonly Line[]): string[] => draw(spansOf(new EventFold("t", eventsOf(lines))));

const cases: Record<string, { events: Line[]; tree: string[] }> = {
  "a turn that hasn't started": { events: [[0, "turn.queue", { agent: "ops" }]], tree: [] },
  "a turn without output": { events: [[0, "turn.start", { agent: "ops" }], endTurn(20)], tree: ["turn ops done 0-20"] },
  "a text": {
    events: [...begin, part(100, "x", "text"), add(120, "x", "Hi"), add(300, "x", "!", { offset: 2 }), end(400, "x"), endTurn(410)],
    tree: ["turn ops done 0-410 first 120", "  Step 1 done 0-410 first 120", "    Text done 100-300 first 120"],
  },
  "steps: after its tools have ended, the model writes again": {
    events: [...begin, part(50, "r", "reasoning"), add(50, "r", "Hm"), end(90, "r"), part(100, "a", "tool", { name: "bash" }), add(130, "a", "{}", { field: "input" }), update(300, "a", "done"), end(300, "a"),
      part(500, "b", "tool", { name: "read" }), update(700, "b", "failed", { error: { message: "no file" } }), end(700, "b"), part(900, "x", "text"), add(900, "x", "So."), end(950, "x"), endTurn(960)],
    tree: ["turn ops done 0-960 first 50", "  Step 1 done 0-300 first 50", "    Reasoning done 50-90 first 50", "    tool bash done 100-300 first 130", "  Step 2 done 300-700 first 500", "    tool read failed 500-700",
      "  Step 3 done 700-960 first 900", "    Text done 900-900 first 900"],
  },
  "parallel tools are one step": {
    events: [...begin, part(10, "a", "tool", { name: "one" }), part(20, "b", "tool", { name: "two" }), update(50, "a", "done"), part(60, "c", "tool", { name: "three" }), update(90, "b", "done"), update(100, "c", "done"), part(120, "x", "text"), add(120, "x", "!"), endTurn(130)],
    tree: ["turn ops done 0-130 first 10", "  Step 1 done 0-100 first 10", "    tool one done 10-50", "    tool two done 20-90", "    tool three done 60-100", "  Step 2 done 100-130 first 120", "    Text done 120-120 first 120"],
  },
  "a running turn": {
    events: [...begin, part(10, "r", "reasoning"), add(10, "r", "a"), end(20, "r"), part(30, "a", "tool", { name: "bash" }), add(40, "a", "{", { field: "input" })],
    tree: ["turn ops running 0- first 10", "  Step 1 running 0- first 10", "    Reasoning done 10-20 first 10", "    tool bash running 30- first 40"],
  },
  "a question about a tool, and one of the agent": {
    events: [...begin, part(10, "a", "tool", { name: "rm" }), [20, "turn.wait", { request: { id: "q", kind: "approval", part: "a", prompt: "May I?" } }], [70, "turn.resume", { answer: { id: "q", decision: "deny", by: "ann" } }],
      update(71, "a", "denied"), end(71, "a"), [80, "turn.wait", { request: { id: "p", kind: "input", prompt: "Which?" } }]],
    tree: ["turn ops waiting 0- first 10", "  Step 1 waiting 0- first 10", "    tool rm denied 10-71", "      question Approval denied 20-70", "    question Question waiting 80-"],
  },
  "a tool that waits": {
    events: [...begin, part(10, "a", "tool", { name: "rm" }), [20, "turn.wait", { request: { id: "q", kind: "approval", part: "a" } }]],
    tree: ["turn ops waiting 0- first 10", "  Step 1 waiting 0- first 10", "    tool rm waiting 10-", "      question Approval waiting 20-"],
  },
  "a cancelled turn": {
    events: [...begin, part(10, "x", "text"), add(20, "x", "I be"), part(30, "a", "tool", { name: "sleep" }), update(31, "a", "running"), [40, "turn.wait", { request: { id: "q", kind: "input" } }], endTurn(90, "cancelled", { by: "ann" })],
    tree: ["turn ops cancelled 0-90 first 20", "  Step 1 cancelled 0-90 first 20", "    Text cancelled 10-20 first 20", "    tool sleep cancelled 30-90", "    question Question cancelled 40-90"],
  },
  "a failed turn: what it had completed is done": {
    events: [...begin, part(10, "a", "tool", { name: "bash" }), update(20, "a", "done"), end(20, "a"), part(30, "x", "text"), add(30, "x", "So"), endTurn(50, "failed", { error: { code: "overloaded", message: "busy" } })],
    tree: ["turn ops failed 0-50 first 10", "  Step 1 done 0-20 first 10", "    tool bash done 10-20", "  Step 2 failed 20-50 first 30", "    Text incomplete 30-30 first 30"],
  },
  "an interrupted turn": {
    events: [...begin, part(10, "r", "reasoning"), add(10, "r", "So"), endTurn(50, "interrupted")],
    tree: ["turn ops interrupted 0-50 first 10", "  Step 1 interrupted 0-50 first 10", "    Reasoning interrupted 10-50 first 10"],
  },
  "a text that was retracted, and one that was corrected": {
    events: [...begin, part(10, "x", "text"), add(10, "x", "Wrong"), [40, "part.replace", { part: "x", text: "" }], end(41, "x"), part(50, "y", "text"), add(50, "y", "Bod"), [60, "part.replace", { part: "y", text: "Bob" }], end(70, "y"), endTurn(80)],
    tree: ["turn ops done 0-80 first 10", "  Step 1 done 0-80 first 10", "    Text retracted 10-10 first 10", "    Text done 50-60 first 50"],
  },
  "turns inside the turn are steps of work too": {
    events: [...begin, part(5, "p", "text"), add(5, "p", "I ask."), end(6, "p"), [10, "turn.start", { turn: "u", parent: "t", agent: "reader" }], [11, "message.start", { turn: "u", message: "n", role: "assistant" }],
      [12, "part.start", { turn: "u", message: "n", part: "x", kind: "text" }], [13, "part.append", { turn: "u", message: "n", part: "x", offset: 0, text: "Read." }],
      [14, "turn.start", { turn: "v", parent: "u", agent: "checker" }], [30, "turn.end", { turn: "v", outcome: "failed", error: { message: "no" } }],
      [40, "turn.end", { turn: "u", outcome: "completed", usage: { input: 7, output: 3 } }], part(60, "x", "text"), add(60, "x", "Done."), endTurn(70)],
    tree: ["turn ops done 0-70 first 5", "  Step 1 done 0-40 first 5", "    Text done 5-5 first 5", "    turn reader done 10-40 first 13", "      Step 1 done 10-40 first 13", "        Text done 12-13 first 13", "        turn checker failed 14-30",
      "  Step 2 done 40-70 first 60", "    Text done 60-60 first 60"],
  },
  "an inner turn without an end, in a turn that has ended": {
    events: [...begin, [10, "turn.start", { turn: "u", parent: "t", agent: "reader" }], [11, "message.start", { turn: "u", message: "n", role: "assistant" }], [12, "part.start", { turn: "u", message: "n", part: "x", kind: "tool", name: "bash" }], endTurn(50)],
    tree: ["turn ops done 0-50", "  Step 1 done 0-50", "    turn reader incomplete 10-50 first 12", "      Step 1 incomplete 10-50 first 12", "        tool bash incomplete 12-50"],
  },
  "a tool without a name, files and unknown kinds": {
    events: [...begin, part(10, "a", "tool", { state: "done" }), part(20, "f", "media", { media: { name: "a.png", mime: "image/png" } }), end(20, "f"), part(30, "h", "hologram"), end(31, "h"), endTurn(40)],
    tree: ["turn ops done 0-40 first 10", "  Step 1 done 0-40 first 10", "    tool tool done 10-10", "    a.png done 20-20", "    Data done 30-31"],
  },
};
for (const [name, { events, tree }] of Object.entries(cases)) {
  test(`spans: ${name}`, () => {
    expect(treeOf(events)).toEqual(tree);
  });
  test(`spans: ${name}, one event after another, each twice`, () => {
    const fold = new EventFold("t");
    for (const e of eventsOf(events)) {
      fold.add([e]);
      expect(fold.add([e])).toBe(false);
      spansOf(fold);
    }
    expect(draw(spansOf(fold))).toEqual(tree);
    expect(fold.hasGap).toBe(false);
  });
}

test("spans: what merged events can't say is not made up", () => {
  // The pieces of the text and the updates of the tool were merged, as in an old log.
  const merged = eventsOf([...begin, part(10, "x", "text"), add(900, "x", "A long text.", { first: 4 }), end(900, "x"), endTurn(910)]);
  expect(draw(spansOf(new EventFold("t", merged)))).toEqual(["turn ops done 0-910 first 10", "  Step 1 done 0-910 first 10", "    Text done 10-900 first 10"]);
});

test("spans: other turns and people's messages are left out, and a gap is noticed", () => {
  const fold = new EventFold("t", eventsOf([...begin, [5, "turn.start", { turn: "other", agent: "x" }], [6, "message.add", { message: "u", role: "user", parts: [{ kind: "text", text: "And this?" }] }]]));
  expect([...fold.turns.keys()]).toEqual(["t"]);
  expect(fold.parts("t")).toEqual([]);
  expect(fold.add([{ seq: 9, type: "part.append", turn: "t", message: "m", part: "unknown", offset: 0, text: "x" }])).toBe(true);
  expect(fold.hasGap).toBe(true);
});

const statuses = eventsOf([...begin, part(10, "s", "status"), [20, "part.replace", { part: "s", text: " Looking ", note: "Looking" }], [30, "part.replace", { part: "s", text: "Looking" }], [50, "part.replace", { part: "s", text: "Found" }],
  part(60, "x", "text"), add(60, "x", "Bod"), [70, "part.replace", { part: "x", text: "Bobby" }], endTurn(80, "completed", { usage: { model: "large", input: 10, output: 4, cache_read: 2, cost: 0.5 } })]);

test("spans: the lines of a status with their times, and removed text", () => {
  const [, , status, text] = allSpans(spansOf(new EventFold("t", statuses))!);
  expect(status).toMatchObject({ kind: "status", preview: "Found", moments: [{ at: 1020, text: "Looking" }, { at: 1050, text: "Found" }] });
  expect(text).toMatchObject({ output: "Bobby", moments: [{ kind: "removed", at: 1070, text: "Bod" }] });
  // A merged event adds the lines that it brings, and the others keep their times.
  const fold = new EventFold("t", statuses.slice(0, 4));
  fold.add([{ seq: 6, first: 5, at: 1050, turn: "t", type: "part.replace", message: "m", part: "s", text: "Found", history: ["Looking", "Found"] }]);
  expect(allSpans(spansOf(fold)!)[2]!.moments).toEqual(status!.moments);
});

const traced = () => spansOf(new EventFold("t", eventsOf([...begin, part(10, "a", "tool", { name: "Bash", call: "c1" }), add(20, "a", '{"command":"ls /srv"}', { field: "input" }), add(30, "a", "one\ntwo", { field: "output" }), update(40, "a", "failed", { error: { code: "exit", message: "exit status 2" } }), end(40, "a"),
  part(60, "x", "text"), add(60, "x", "Two files."), end(61, "x"), endTurn(70, "completed", { usage: { model: "large", input: 10, output: 4, cache_read: 2, cost: 0.5 } })])), "What is there?")!;

test("the JSON of a trace: spans in order with the ids around them, and the names of the GenAI conventions", () => {
  const json = JSON.parse(traceJSON(traced(), "c")) as { turn: string; spans: { id: string; parent?: string }[] };
  expect(json).toMatchObject({ turn: "t", "gen_ai.conversation.id": "c" });
  expect(json.spans.map((s) => [s.id, s.parent])).toEqual([["turn t", undefined], ["step t 1", "turn t"], ["part m a", "step t 1"], ["step t 2", "turn t"], ["part m x", "step t 2"]]);
  expect(json.spans[0]).toMatchObject({ kind: "turn", name: "ops", state: "done", start: 1000, end: 1070, duration: 70, firstOutput: 1010, input: "What is there?", output: "Two files.", attributes: {
    "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "ops", "gen_ai.response.model": "large", "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 4, "gen_ai.usage.cache_read.input_tokens": 2, "leat.usage.cost": 0.5, "leat.turn": "t", "leat.outcome": "completed" } });
  expect(json.spans[2]).toEqual({ id: "part m a", parent: "step t 1", kind: "tool", name: "Bash", state: "failed", start: 1010, end: 1040, duration: 30, inputComplete: 1020, input: '{"command":"ls /srv"}', output: "one\ntwo",
    error: { code: "exit", message: "exit status 2" }, attributes: { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "Bash", "gen_ai.tool.call.id": "c1", "error.type": "exit", "leat.turn": "t", "leat.message": "m", "leat.part": "a" } });
  expect(attributesOf({ ...traced(), error: { message: "no code" } })["error.type"]).toBe("_OTHER");
});

test("rows: levels, positions, and what is inside folded spans", () => {
  const root = traced();
  const shape = (folded: string[]) => rowsOf(root, new Set(folded)).map((r) => [r.span.id, r.level, r.position, r.size, r.isOpen]);
  expect(shape([])).toEqual([["turn t", 1, 1, 1, true], ["step t 1", 2, 1, 2, true], ["part m a", 3, 1, 1, undefined], ["step t 2", 2, 2, 2, true], ["part m x", 3, 1, 1, undefined]]);
  expect(shape(["step t 1"])).toEqual([["turn t", 1, 1, 1, true], ["step t 1", 2, 1, 2, false], ["step t 2", 2, 2, 2, true], ["part m x", 3, 1, 1, undefined]]);
  expect(shape(["turn t"])).toEqual([["turn t", 1, 1, 1, false]]);
  expect(around(root, "part m x")).toEqual(["turn t", "step t 2"]);
  expect(around(root, "nothing")).toEqual([]);
  expect(countOf(root, "tool")).toBe(1);
});

test("search: names, inputs and outputs; the next hit, in a circle", () => {
  const root = traced();
  const search = (text: string) => [...hitsOf(root, text)];
  expect(search(" bash ")).toEqual([["part m a", "name"]]);
  expect(search("COMMAND")).toEqual([["part m a", "input"]]);
  expect(search("one")).toEqual([["part m a", "output"]]);
  expect(search("two")).toEqual([["part m a", "output"], ["part m x", "name"]]);
  expect(search("what is")).toEqual([["turn t", "input"]]);
  expect(search("status 2")).toEqual([["part m a", "output"]]);
  expect(search("")).toEqual([]);
  const hits = hitsOf(root, "two");
  expect(nextHit(root, hits, "turn t", 1)).toBe("part m a");
  expect(nextHit(root, hits, "part m a", 1)).toBe("part m x");
  expect(nextHit(root, hits, "part m x", 1)).toBe("part m a");
  expect(nextHit(root, hits, "part m a", -1)).toBe("part m x");
  expect(nextHit(root, new Map(), "turn t", 1)).toBeUndefined();
});

test("the ticks of the axis are round and few", () => {
  expect(ticksOf(0, 4)).toEqual([0]);
  expect(ticksOf(960, 4)).toEqual([0, 500]);
  expect(ticksOf(2100, 4)).toEqual([0, 1000, 2000]);
  expect(ticksOf(95_000, 4)).toEqual([0, 30_000, 60_000, 90_000]);
  for (const duration of [3, 77, 1234, 56_789, 3_600_000, 1e9]) expect(ticksOf(duration, 4).length).toBeLessThanOrEqual(5);
});

test("a trace of thousands of spans", () => {
  const lines: Line[] = [...begin];
  for (let i = 0; i < 2000; i++) lines.push(part(i, `p${i}`, "tool", { name: "x" }), add(i, `p${i}`, "{}", { field: "input" }), update(i, `p${i}`, "done"), end(i, `p${i}`));
  expect(rowsOf(spansOf(new EventFold("t", eventsOf([...lines, endTurn(10_001)])))!, new Set()).length).toBe(4001);
});

test("the longest pause is between parts, before the first or after the last, and never inside one", () => {
  const pause = (lines: readonly Line[], time = 0) => longestPause(spansOf(new EventFold("t", eventsOf(lines)))!, 1000 + time);
  expect(pause([...begin, part(100, "x", "text"), add(120, "x", "Hi"), end(400, "x"), part(900, "a", "tool", { name: "bash" }), part(950, "b", "tool", { name: "read" }), end(1000, "b"), end(5000, "a"), endTurn(5010)])).toBe(780);
  expect(pause([...begin, part(600, "x", "text"), add(610, "x", "Hi"), end(620, "x"), endTurn(700)])).toBe(600);
  expect(pause([...begin, part(10, "x", "text"), add(20, "x", "Hi"), end(30, "x")], 530)).toBe(510);
  expect(pause([...begin, part(10, "a", "tool", { name: "bash" })], 9000)).toBe(10);
});
