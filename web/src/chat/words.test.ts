import { expect, test } from "vitest";

import { type Facts, announce, restart, restarting, tell, words } from "./words";

const time = 1_000_000;
const facts = (f: Partial<Facts> = {}): Facts => ({ state: "connected", retryAt: 0, online: true, waiting: 0, restarting: false, behind: 0, heard: time - 3000, ...f });
const text = (f: Partial<Facts>) => {
  const w = words(facts(f), time);
  return w.outbox ? `${w.text} · ${w.outbox}` : w.text;
};

test("each state in words", () => {
  expect(words(facts(), time)).toEqual({ kind: "live", text: "Live", outbox: "", tryNow: false });
  expect(text({ state: "idle" })).toBe("Connecting");
  expect(text({ state: "connecting", waiting: 1 })).toBe("Connecting · 1 message waiting");
  expect(text({ state: "reconnecting" })).toBe("Reconnecting");
  expect(words(facts({ state: "reconnecting", retryAt: time + 2001 }), time)).toEqual({ kind: "reconnecting", text: "Reconnecting in 3 s", outbox: "", tryNow: true });
  expect(text({ state: "failed", retryAt: time + 30_000, waiting: 2 })).toBe("Reconnecting in 30 s · 2 messages waiting");
  expect(text({ state: "reconnecting", online: false, waiting: 2 })).toBe("Offline · 2 messages waiting");
  expect(text({ state: "reconnecting", restarting: true, retryAt: time + 1 })).toBe("Gateway restarting");
  expect(text({ restarting: true })).toBe("Gateway restarting");
  expect(text({ behind: 41 })).toBe("Behind by 41 events · catching up");
  expect(text({ behind: 1 })).toBe("Behind by 1 event · catching up");
  expect(text({ heard: time - 18_900 })).toBe("No data for 18 s");
  expect(text({ online: false })).toBe("Live"); // a gateway on the same machine is heard without a network
  expect(text({ state: "unauthorized" })).toBe("Signed out");
  expect(text({ state: "forbidden", waiting: 2 })).toBe("Address not allowed by the gateway");
});

test("a blip is neither shown nor said; what lasts is shown, then said, without the seconds", () => {
  const connected = words(facts(), time);
  const disconnected = words(facts({ state: "reconnecting", retryAt: time + 3000 }), time);
  let t = announce(connected, time);
  expect(tell(t, connected, time + 5000)).toBe(t);
  t = tell(t, disconnected, time + 100);
  expect(t.shown).toBe(connected);
  t = tell(t, disconnected, time + 700);
  expect(t.shown).toBe(connected);
  const reconnected = tell(t, connected, time + 750);
  expect([reconnected.shown, reconnected.said]).toEqual([connected, ""]);
  t = tell(t, disconnected, time + 800);
  expect([t.shown, t.said]).toEqual([disconnected, ""]);
  t = tell(t, words(facts({ state: "reconnecting", retryAt: time + 3000 }), time + 2100), time + 2100);
  expect([t.shown.text, t.said]).toEqual(["Reconnecting in 1 s", "Connection lost. Reconnecting."]);
  expect(tell(t, t.shown, time + 2200)).toBe(t); // nothing to draw
  t = tell(t, connected, time + 3000);
  expect([t.shown, t.said]).toEqual([connected, "Connection lost. Reconnecting."]);
  t = tell(t, connected, time + 5000);
  expect(t.said).toBe("Connected.");
});

test("a restart is known by the status and by how the connection ended, until the gateway is back or a minute is over", () => {
  const initial = { told: false, at: 0 };
  const announced = restart(initial, { status: "restarting" }, time);
  expect(restarting(announced, time + 500_000, false)).toBe(true); // a drain may take its time
  const interrupted = restart(announced, { live: "reconnecting" }, time + 1000);
  expect(restarting(interrupted, time + 2000, false)).toBe(true);
  expect(restarting(interrupted, time + 70_000, false)).toBe(false);
  expect(restarting(interrupted, time + 70_000, true)).toBe(true); // it still answers
  const closed = restart(initial, { state: "reconnecting", reason: "restarting" }, time);
  expect(restarting(closed, time + 100, false)).toBe(true);
  expect(restarting(restart(closed, { state: "reconnecting", reason: "network" }, time + 500), time + 600, false)).toBe(true);
  expect(restarting(restart(closed, { state: "connected", reason: undefined }, time + 900), time + 1000, false)).toBe(false);
  expect(restarting(restart(interrupted, { status: "running" }, time + 3000), time + 3001, false)).toBe(false);
  expect(restarting(restart(initial, { state: "reconnecting", reason: "network" }, time), time, false)).toBe(false);
});
