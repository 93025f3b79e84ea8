// Notifications: the switch in the settings, and what the service worker shows while the page is visible, hidden or closed. No push service
// is reachable here, so the browser's subscription is replaced where one is needed, and push messages come from the browser's protocol.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { accessible } from "./axe.mjs";
import { closeBrowser, Gateway, lacking, looks, open, wantClean } from "./harness.mjs";
import { RawBrowser } from "./raw.mjs";

const browserPath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

// What a browser without a push service does.
const noService = `PushManager.prototype.subscribe = () => Promise.reject(new Error("no push service"));`;
// What a browser with one does. The subscription outlasts a reload, like a real one.
const service = `{
  const name = "test.subscription";
  const subscription = () => ({
    endpoint: "https://push.example.com/device", options: { applicationServerKey: Uint8Array.from(JSON.parse(localStorage.getItem(name))).buffer },
    toJSON: () => ({ endpoint: "https://push.example.com/device", expirationTime: null, keys: {
      p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", auth: "BTBZMqHH6r4Tts7J_aSIgg" } }),
    unsubscribe: async () => { localStorage.removeItem(name); return true; },
  });
  PushManager.prototype.subscribe = async (o) => {
    if (!o.userVisibleOnly || o.applicationServerKey.length !== 65) throw new Error("wrong options");
    localStorage.setItem(name, JSON.stringify([...o.applicationServerKey]));
    return subscription();
  };
  PushManager.prototype.getSubscription = async () => (localStorage.getItem(name) ? subscription() : null);
}`;

if (lacking) {
  test("notifications", { skip: lacking }, () => {});
} else {
  let gateway;
  before(async () => {
    gateway = await Gateway.start();
  });
  after(async () => {
    await closeBrowser();
    await gateway?.close();
  });

  const send = (id, text) => gateway.call(`/api/conversations/${id}/commands`, { type: "send", message: { role: "user", text } });
  const connected = `document.querySelector('.connection[data-state="connected"]') !== null`;
  const state = `document.getElementById("notices-state")?.textContent.trim()`;
  const checkbox = `[...document.querySelectorAll(".sheet label")].find((l) => l.textContent.includes("When an answer ends")).querySelector("input")`;
  // In the worker: records the notices that arrive, and what the browser has accepted. While a busy browser displays a notification,
  // getNotifications() removes it.
  const record = `{
    globalThis.shown = new Map();
    globalThis.arrivals = 0;
    for (const type of ["push", "message"]) addEventListener(type, () => { arrivals++; });
    const show = registration.showNotification.bind(registration);
    registration.showNotification = async (title, options) => {
      await show(title, options);
      shown.set(options.tag, [title, options.body, options.tag]);
    };
  }`;
  /** Waits until the worker has handled its first n notices: its list of pages comes after theirs. */
  const handled = async (worker, n) => {
    await worker.waitFor(`arrivals >= ${n}`);
    await worker.eval(`clients.matchAll({ type: "window", includeUncontrolled: true }).then((all) => all.length)`);
  };
  const shownNotices = `JSON.stringify([...shown.values()])`;

  /** Opens a page that may notify, in a browser of its own, and turns notifications on. */
  async function begin(t, script, want) {
    const browser = new RawBrowser(browserPath, flags);
    t.after(() => browser.close());
    await browser.send("Browser.grantPermissions", { permissions: ["notifications"], origin: gateway.url });
    const tab = await browser.tab(gateway.url, script);
    await tab.waitFor(connected);
    await tab.eval(`document.querySelector('.rail button[title="Settings"]').click()`);
    await tab.waitFor(`${state} !== undefined`);
    assert.match(await tab.eval(state), /^Shown when this page is in the background or closed/);
    await tab.eval(`${checkbox}.click()`);
    await tab.waitFor(`${state} === ${JSON.stringify(want)}`);
    assert.equal(await tab.eval(`${checkbox}.checked`), true);
    await tab.eval(`document.querySelector('.sheet [aria-label="Close"]').click()`);
    const worker = await browser.worker(`${gateway.url}/ui/push.js`);
    await worker.eval(record);
    // The worker learns later than the page that the page is hidden.
    const hide = async () => {
      const front = await browser.tab("about:blank");
      await front.activate();
      await tab.waitFor("document.hidden");
      await worker.waitFor(`clients.matchAll({ type: "window", includeUncontrolled: true }).then((all) => all.length > 0 && all.every((c) => c.visibilityState === "hidden"))`);
    };
    return { browser, tab, worker, hide };
  }

  test("a page in the background notifies without a push service", async (t) => {
    const { tab, worker, hide } = await begin(t, noService, "On while this page is open in the background. This browser has no push service, so nothing is shown when the page is closed.");
    for (const id of ["seen", "unseen"]) await gateway.conversation(id, `Title of ${id}`);
    await send("seen", "echo while the page is visible");
    await tab.waitFor(`document.querySelector('.rail a[href="#/c/seen"] .unread') !== null`);
    await handled(worker, 1);
    await hide();
    await send("unseen", "echo while it is hidden");
    await worker.waitFor(`${shownNotices} !== "[]"`);
    assert.equal(await worker.eval(shownNotices), JSON.stringify([["Title of unseen", "The answer is complete.", "unseen"]]));
    await send("unseen", "ask");
    await worker.waitFor(`${shownNotices}.includes("Waiting")`);
    assert.equal(await worker.eval(shownNotices), JSON.stringify([["Title of unseen", "Waiting for your answer.", "unseen"]]), "it replaces the earlier one");

    // A click opens the conversation in the page that is there. Only a real click may move the focus, so that part fails.
    await worker.eval(`(async () => {
      let all = await registration.getNotifications();
      for (; all.length === 0; all = await registration.getNotifications()) {
        await registration.showNotification("Again", { tag: "unseen", data: { conversation: "unseen" } });
        await new Promise((r) => setTimeout(r, 100));
      }
      dispatchEvent(new NotificationEvent("notificationclick", { notification: all[0] }));
    })()`);
    await tab.waitFor(`location.hash === "#/c/unseen"`);
    await worker.waitFor(`registration.getNotifications().then((all) => all.length === 0)`);

    // After a reload the page still notifies. Turning the switch off removes the worker.
    await tab.activate();
    await tab.reload();
    await tab.waitFor(`document.readyState === "complete" && ${connected}`);
    await tab.eval(`document.querySelector('.rail button[title="Settings"]').click()`);
    await tab.waitFor(`${state}?.startsWith("On while")`);
    await tab.eval(`${checkbox}.click()`);
    await tab.waitFor(`${state}?.startsWith("Shown when")`);
    assert.equal(await tab.eval(`navigator.serviceWorker.getRegistrations().then((all) => all.length)`), 0);
    assert.equal(await tab.eval(`localStorage.getItem("leat.notify")`), "false");
  });

  test("push messages are shown while no page is visible", async (t) => {
    const { browser, tab, worker, hide } = await begin(t, service, "On, also when this page is closed.");
    const posts = `performance.getEntriesByType("resource").filter((e) => e.name.endsWith("/api/notifications") && e.responseStatus === 200).length`;
    await tab.waitFor(`${posts} === 2`); // the key, and the subscription
    await browser.send("ServiceWorker.enable", {}, tab.session);
    const registrationId = await (async () => {
      for (const limit = Date.now() + 60_000; Date.now() < limit; await new Promise((r) => setTimeout(r, 50))) {
        const registration = browser.events.filter((e) => e.method === "ServiceWorker.workerRegistrationUpdated").flatMap((e) => e.params.registrations).find((r) => r.scopeURL === `${gateway.url}/ui/`);
        if (registration) return registration.registrationId;
      }
      throw new Error("the worker is not registered");
    })();
    const deliver = (notice) => browser.send("ServiceWorker.deliverPushMessage", { origin: gateway.url, registrationId, data: JSON.stringify(notice) }, tab.session);
    await deliver({ kind: "ended", conversation: "visible", turn: "t", outcome: "completed" });
    await handled(worker, 1);
    await hide();
    await deliver({ kind: "ended", conversation: "untitled", turn: "t", outcome: "failed" });
    await worker.waitFor(`${shownNotices} !== "[]"`);
    assert.equal(await worker.eval(shownNotices), JSON.stringify([["Leat", "The answer has failed.", "untitled"]]));
    // The page itself shows nothing, since the message comes anyway.
    await gateway.conversation("pushed", "Pushed");
    await send("pushed", "echo once");
    await tab.waitFor(`document.querySelector('.rail a[href="#/c/pushed"] .unread') !== null`);
    await deliver({ kind: "ended", conversation: "last", title: "Last", turn: "t", outcome: "interrupted" });
    await worker.waitFor(`${shownNotices}.includes("Last")`);
    assert.doesNotMatch(await worker.eval(shownNotices), /Pushed/);

    // A reload renews the subscription. Another user's subscription is ended.
    await tab.activate();
    await tab.reload();
    await tab.waitFor(`document.readyState === "complete" && ${connected} && ${posts} === 2`);
    await tab.eval(`localStorage.removeItem("leat.notify")`);
    await tab.reload();
    await tab.waitFor(`document.readyState === "complete" && ${connected} && localStorage.getItem("test.subscription") === null`);
    await tab.waitFor(`navigator.serviceWorker.getRegistrations().then((all) => all.length === 0)`);
  });

  const cases = [
    ["insecure", /HTTPS/, () => Object.defineProperty(window, "isSecureContext", { value: false })],
    ["unsupported", /doesn’t support/, () => { delete window.Notification; }],
    ["denied", /^Blocked in this browser/, () => Object.defineProperty(Notification, "permission", { value: "denied" })],
    ["off", /^Shown when/, () => Object.defineProperty(Notification, "permission", { value: "default" })],
  ];
  for (const [theme, phone] of looks) {
    test(`the switch says why it can't be used: ${theme}, ${phone ? "phone" : "wide"}`, async () => {
      for (const [name, want, prepare] of cases) {
        const page = await open(gateway, { colorScheme: theme, viewport: phone ? { width: 360, height: 740 } : { width: 1280, height: 800 }, prepare: (p) => p.addInitScript(prepare) });
        if (phone) await page.getByRole("button", { name: "Conversations" }).click();
        await page.getByRole("button", { name: "Settings" }).click();
        const box = page.getByRole("checkbox", { name: "When an answer ends or needs you" });
        await box.waitFor();
        assert.match((await page.locator("#notices-state").innerText()).trim(), want);
        assert.equal(await box.isDisabled(), name !== "off");
        await accessible(page, `the settings, notifications ${name}`);
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
        if (process.env.SHOTS) {
          await page.screenshot({ path: `${process.env.SHOTS}/settings-${name}-${theme}-${phone ? "phone" : "wide"}.png` });
          await page.getByRole("group", { name: "Notifications" }).scrollIntoViewIfNeeded();
          await page.locator(".sheet").evaluate((s) => s.scrollTo(0, s.scrollHeight));
          await page.screenshot({ path: `${process.env.SHOTS}/settings-${name}-${theme}-${phone ? "phone" : "wide"}-end.png` });
        }
        await wantClean(page);
      }
    });
  }
}
