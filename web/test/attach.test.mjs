// Attaching an upstream session, and the events of a session outside of the page's turns.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { accessible } from "./axe.mjs";
import { closeBrowser, composer, current, Gateway, lacking, open, wantClean } from "./harness.mjs";

if (lacking) {
  test("attach", { skip: lacking }, () => {});
} else {
  let gateway;
  before(async () => {
    gateway = await Gateway.start();
    await gateway.conversation("taken-over", "Planning", [["user", "hello from the terminal"], ["assistant", "hello, terminal"]]);
  });
  after(async () => {
    await closeBrowser();
    await gateway?.close();
  });

  // The test agent has no sessions, so the gateway's answers about them are replaced.
  async function attaching(page, requests) {
    await page.route("**/api/agents", async (route) => {
      const res = await route.fetch();
      const { agents } = await res.json();
      await route.fulfill({ response: res, json: { agents: agents.map((a) => ({ ...a, sessions: a.name === "test" })) } });
    });
    await page.route("**/api/agents/test/sessions", async (route) => {
      const r = route.request();
      if (r.method() === "GET") {
        await route.fulfill({ json: { sessions: [{ id: "agent:main:main", title: "Planning", updated: "2026-11-20T10:00:00Z" }, { id: "s2" }] } });
        return;
      }
      requests.push(r.postDataJSON());
      if (requests.length === 1) await route.fulfill({ status: 409, json: { error: "the conversation x follows this session already", reason: "conflict" } });
      else await route.fulfill({ status: 201, json: { conversation: "taken-over", title: "Planning" } });
    });
  }

  test("an operator chooses a session and attaches it with its history, for a user", async () => {
    const requests = [];
    const page = await open(gateway, { path: "/", prepare: (p) => attaching(p, requests) });
    await page.getByRole("button", { name: "Attach a session…" }).click();
    const sheet = page.getByRole("dialog", { name: "Attach a session" });
    const attach = sheet.getByRole("button", { name: "Attach", exact: true });
    await sheet.getByText("Planning").waitFor();
    assert.equal(await attach.isDisabled(), true, "nothing is chosen yet");
    await sheet.getByRole("searchbox").fill("plan");
    assert.equal(await sheet.getByRole("radio").count(), 1);
    await sheet.getByRole("radio", { name: /Planning/ }).check();
    assert.equal(await sheet.getByRole("checkbox", { name: "Import the session’s history" }).isChecked(), true);
    await accessible(page);
    await attach.click();
    await sheet.getByRole("alert").getByText("follows this session already").waitFor();
    await sheet.getByRole("checkbox", { name: "Import the session’s history" }).uncheck();
    await sheet.getByText("For another user").click();
    await sheet.getByRole("textbox", { name: "User" }).fill("alice");
    await attach.click();
    await sheet.waitFor({ state: "detached" });
    await page.getByText("hello, terminal").waitFor();
    assert.equal(current(page), "taken-over");
    assert.deepEqual(requests, [
      { session: "agent:main:main", owner: "", tenant: "", history: true },
      { session: "agent:main:main", owner: "alice", tenant: "", history: false },
    ]);
    await composer(page).waitFor();
    await wantClean(page, { console: /Failed to load resource/ }); // the one that was refused
  });

  test("if no agent has sessions, nothing offers to attach one", async () => {
    const page = await open(gateway, { path: "/" });
    await page.getByRole("heading", { name: "How can I help?" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Attach a session…" }).count(), 0);
    await wantClean(page);
  });
}
