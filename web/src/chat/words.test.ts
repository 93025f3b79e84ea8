import { expect, test } from "vitest";

import { type Facts, announce, restart, restarting, tell, words } from "./words";

const now = 1_000_000;
const facts = (f: Partial<Facts> = {}): Facts => ({ state: "connected", retryAt: 0, online: true, waiting: 0, restarting: false, behind: 0, heard: now - 3000, ...f });
const text = (f: Partial<Facts>) => words(facts(f), now).text;

test("each state in words", () => {
  expect(words(facts(), now)).toEqual({ kind: "live", text: "Live", tryNow: false });
  expect(text({ state: "idle" })).toBe("Connecting");
  expect(text({ state: "connecting", waiting: 1 })).toBe("Connecting · 1 message waiting");
  expect(text({ state: "reconnecting" })).toBe("Reconnecting");
  expect(words(facts({ state: "reconnecting", retryAt: now + 2001 }), now)).toEqual({ kind: "reconnecting", text: "Reconnecting in 3 s", tryNow: true });
  expect(text({ state: "failed", retryAt: now + 30_000, waiting: 2 })).toBe("Reconnecting in 30 s · 2 messages waiting");
  expect(text({ state: "reconnecting", online: false, waiting: 2 })).toBe("Offline · 2 messages waiting");
  expect(text({ state: "reconnecting", restarting: true, retryAt: now + 1 })).toBe("Gateway restarting");
  expect(text({ restarting: true })).toBe("Gateway restarting");
  expect(text({ behind: 41 })).toBe("Behind by 41 events · catching up");
  expect(text({ behind: 1 })).toBe("Behind by 1 event · catching up");
  expect(text({ heard: now - 18_900 })).toBe("No data for 18 s");
  expect(text({ online: false })).toBe("Live"); // a gateway on the same machine is heard without a network
  expect(text({ state: "unauthorized" })).toBe("Signed out");
  expect(text({ state: "forbidden", waiting: 2 })).toBe("Address not allowed by the gateway");
});

test("a blip is neither shown nor said; what lasts is shown, then said, without the seconds", () => {
  const live = words(facts(), now);
  const lost = words(facts({ state: "reconnecting", retryAt: now + 3000 }), now);
  let t = announce(live, now);
  expect(tell(t, live, now + 5000)).toBe(t);
  t = tell(t, lost, now + 100);
  expect(t.shown).toBe(live);
  t = tell(t, lost, now + 700);
  expect(t.shown).toBe(live);
  const back = tell(t, live, now + 750);
  expect([back.shown, back.said]).toEqual([live, ""]);
  t = tell(t, lost, now + 800);
  expect([t.shown, t.said]).toEqual([lost, ""]);
  t = tell(t, words(facts({ state: "reconnecting", retryAt: now + 3000 }), now + 2100), now + 2100);
  expect([t.shown.text, t.said]).toEqual(["Reconnecting in 1 s", "Connection lost. Reconnecting."]);
  expect(tell(t, t.shown, now + 2200)).toBe(t); // nothing to draw
  t = tell(t, live, now + 3000);
  expect([t.shown, t.said]).toEqual([live, "Connection lost. Reconnecting."]);
  t = tell(t, live, now + 5000);
  expect(t.said).toBe("Connected.");
});

test("a restart is known by the status and by how the connection ended, until the gateway is back or a minute is over", () => {
  const none = { told: false, at: 0 };
  const told = restart(none, { status: "restarting" }, now);
  expect(restarting(told, now + 500_000)).toBe(true); // a drain may take its time
  const cut = restart(told, { live: "reconnecting" }, now + 1000);
  expect(restarting(cut, now + 2000)).toBe(true);
  expect(restarting(cut, now + 70_000)).toBe(false);
  const closed = restart(none, { state: "reconnecting", reason: "restarting" }, now);
  expect(restarting(closed, now + 100)).toBe(true);
  expect(restarting(restart(closed, { state: "reconnecting", reason: "network" }, now + 500), now + 600)).toBe(true);
  expect(restarting(restart(closed, { state: "connected", reason: undefined }, now + 900), now + 1000)).toBe(false);
  expect(restarting(restart(cut, { status: "running" }, now + 3000), now + 3001)).toBe(false);
  expect(restarting(restart(none, { state: "reconnecting", reason: "network" }, now), now)).toBe(false);
});
