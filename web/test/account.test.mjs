// Users who share a browser: no text of one user is sent in the name of another, or left where the other can read it.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";

import { allowed, ask, closeBrowser, composer, current, Gateway, idle, lacking, open, wantClean } from "./harness.mjs";

const secret = "a secret of at least 32 bytes, of the tests";
const b64 = (s) => Buffer.from(s).toString("base64url");

/** A user's token. */
function token(sub, seconds = 3600) {
  const text = `${b64('{"alg":"HS256","typ":"JWT"}')}.${b64(JSON.stringify({ sub, exp: Math.floor(Date.now() / 1000) + seconds }))}`;
  return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
}

const field = (page) => page.getByLabel("Access token");
const connected = (page) => page.locator('.connection[data-state="connected"]').waitFor();
const signOutButton = (page) => page.locator(".rail").getByRole("button", { name: "Sign out" });
const confirmButton = (page) => page.locator(".rail .sure").getByRole("button", { name: "Sign out" });

/**
 * Presses a button that signs out. All pages of the browser reload, but they can show the form before, as soon as the gateway
 * refuses a socket. So the messages can disappear early, and the form must not be filled in before the reload.
 */
async function signOut(button, ...pages) {
  for (const p of pages) await p.evaluate(() => window.allowed.add("go")); // until the reload
  await Promise.all([...pages.map((p) => p.waitForEvent("load")), button.click()]);
  for (const p of pages) await field(p).waitFor();
}

async function signIn(page, user) {
  page.expected = 0;
  await field(page).fill(token(user));
  await page.getByRole("button", { name: "Sign in" }).click();
  await connected(page);
}

/** Returns everything that scripts of this origin can read in the browser's storage. */
const browserStorage = (page) => page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }));

/** Returns the titles and texts of all conversations of a user. */
async function conversationsOf(gateway, user) {
  const headers = { Authorization: `Bearer ${token(user)}` };
  const { conversations } = await (await fetch(`${gateway.url}/api/conversations`, { headers })).json();
  const docs = await Promise.all(conversations.map(async (c) => (await fetch(`${gateway.url}/api/conversations/${encodeURIComponent(c.id)}/transcript`, { headers })).text()));
  return JSON.stringify(conversations) + docs.join("");
}

/** Cuts a page's sockets until the returned function is called. HTTP requests still work. */
async function cutSockets(page) {
  let down = true;
  const open = new Set();
  await page.routeWebSocket(/.*/, (ws) => {
    if (down) return void ws.close({ code: 1013 });
    ws.connectToServer();
    open.add(ws);
  });
  return () => (down = false);
}

const noise = { console: /401|404|WebSocket|Failed to load resource|ERR_/ };

test("two people and one browser", { skip: lacking || false, concurrency: 1 }, async (t) => {
  const gateway = await Gateway.start([], { LEAT_USERS_SECRET: secret });
  t.after(() => gateway.close());
  t.after(closeBrowser);

  await t.test("signing out deletes everything, after a warning about unsent messages", async () => {
    const page = await open(gateway, { signedOut: true });
    await signIn(page, "alice");
    await ask(page, "echo of alice");
    await idle(page);
    const id = current(page);
    // A file in the browser's cache.
    const media = await page.evaluate(async (c) => {
      const res = await fetch(`/api/conversations/${c}/files?name=a.txt`, { method: "POST", headers: { "Content-Type": "text/plain" }, body: "a file of alice" });
      return new URL((await res.json()).media.url, location.href).href;
    }, id);
    const get = (url) => page.evaluate(async (u) => { const r = await fetch(u); return `${r.status} ${await r.text()}`; }, url);
    assert.match(await get(media), /^200 a file of alice/);
    const heal = await cutSockets(page);
    await page.reload();
    await composer(page).fill("echo waits of alice");
    await composer(page).press("Enter");
    await composer(page).fill("a draft of alice");
    await page.waitForFunction(() => JSON.stringify({ ...localStorage }).includes("a draft of alice"));

    await signOutButton(page).click();
    await page.getByText("One message has not been sent. One draft is saved here. Signing out deletes unsent messages and drafts.").waitFor();
    await page.screenshot({ path: process.env.SHOTS ? `${process.env.SHOTS}/leave.png` : undefined });
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.waitForFunction(() => document.activeElement?.textContent?.includes("Sign out"));
    assert.match(await browserStorage(page), /waits of alice/);
    await signOutButton(page).click();
    await signOut(confirmButton(page), page);
    assert.doesNotMatch(await browserStorage(page), /alice|outbox|draft|agents|stopped|shown/);

    heal();
    await signIn(page, "bob");
    await page.getByText("No conversations yet.").waitFor();
    assert.equal(await composer(page).inputValue(), "");
    assert.match(await get(media), /^404 /, "not out of the browser's cache either");
    await ask(page, "echo of bob");
    await idle(page);
    assert.equal(await page.getByText("alice").count(), 0);
    assert.doesNotMatch(await conversationsOf(gateway, "bob"), /alice/);
    assert.doesNotMatch(await conversationsOf(gateway, "alice"), /waits/);
    await wantClean(page, noise);
  });

  await t.test("after a session ends, a waiting message is sent in its author's name, or not at all", async () => {
    const page = await open(gateway, { signedOut: true });
    await signIn(page, "carol");
    await ask(page, "echo of carol");
    await idle(page);
    const heal = await cutSockets(page);
    await page.reload();
    await composer(page).fill("echo waits of carol");
    await composer(page).press("Enter");
    await page.getByText("Waiting to be sent").waitFor();
    await composer(page).fill("a draft of carol");
    await page.waitForFunction(() => JSON.stringify({ ...localStorage }).includes("a draft of carol"));
    // The session expires: the page checks its session whenever a socket fails, perhaps before heal.
    await allowed(page, "go", async () => { // the shown conversation belongs to another user
      await page.context().clearCookies();
      heal();
      await field(page).waitFor({ timeout: 60_000 });
    });

    const loaded = page.waitForEvent("load");
    await signIn(page, "dave");
    await loaded;
    await connected(page);
    await page.getByText("No conversations yet.").waitFor();
    assert.equal(await page.getByText("carol").count(), 0);
    assert.equal(await composer(page).inputValue(), "");
    await page.evaluate(() => (location.hash = "#/"));
    await page.getByRole("heading", { name: "How can I help?" }).waitFor();
    await ask(page, "echo of dave");
    await idle(page);
    assert.doesNotMatch(await conversationsOf(gateway, "dave"), /carol/);
    await signOut(signOutButton(page), page);

    // The author still has the draft.
    await signIn(page, "carol");
    await page.getByRole("link", { name: /of carol/ }).first().click();
    await page.getByRole("article").getByText("echo waits of carol").waitFor();
    await idle(page);
    assert.match(await conversationsOf(gateway, "carol"), /waits of carol/);
    assert.equal(await composer(page).inputValue(), "a draft of carol");
    await wantClean(page, noise);
  });

  await t.test("all readers see who stopped an answer", async () => {
    const page = await open(gateway, { signedOut: true });
    await signIn(page, "grace");
    await ask(page, "ask");
    await page.locator(".ask").waitFor();
    const path = `/#/c/${encodeURIComponent(current(page))}`;
    const response = await fetch(`${gateway.url}/api/conversations/${encodeURIComponent(current(page))}/commands`, {
      method: "POST", headers: { Authorization: `Bearer ${token("grace")}` }, body: JSON.stringify({ type: "share", subject: "heidi", access: "write" }),
    });
    assert.equal(response.status, 200);
    // Another browser of the same user, and one of another user.
    const pages = [];
    for (const user of ["grace", "heidi"]) {
      const other = await open(gateway, { signedOut: true });
      await signIn(other, user);
      await other.goto(gateway.url + path);
      await other.locator(".ask").waitFor();
      pages.push(other);
    }
    const [second, guest] = pages;
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await page.getByText(/^Stopped by you after \d/).waitFor();
    await second.getByText(/^Stopped by you after \d/).waitFor();
    await guest.getByText(/^Stopped by grace after \d/).waitFor();
    await guest.reload();
    await guest.getByText(/^Stopped by grace after \d/).waitFor();
    for (const p of [page, ...pages]) await wantClean(p, noise);
  });

  await t.test("after signing out, another tab sends nothing", async () => {
    const page = await open(gateway, { signedOut: true });
    await signIn(page, "erin");
    const tab = await page.context().newPage();
    await tab.goto(gateway.url);
    await connected(tab);
    const heal = await cutSockets(tab);
    await tab.reload();
    await composer(tab).fill("echo waits of erin");
    await composer(tab).press("Enter");
    await tab.getByText("Waiting to be sent").waitFor();
    await signOutButton(page).click();
    await page.getByText("One message has not been sent.").waitFor();
    await signOut(confirmButton(page), page, tab);
    heal();
    await signIn(page, "frank");
    await ask(page, "echo of frank");
    await idle(page);
    await tab.reload();
    await connected(tab);
    await tab.getByRole("link", { name: /of frank/ }).waitFor();
    assert.doesNotMatch(await conversationsOf(gateway, "frank"), /erin/);
    assert.doesNotMatch(await browserStorage(tab), /erin/);
    await wantClean(page, noise);
  });
});
