// Loading the page: the first paint, the theme before it, and installing the page as an application.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { accessible } from "./axe.mjs";
import { browser, closeBrowser, composer, Gateway, lacking, open, wantClean } from "./harness.mjs";

if (lacking) {
  test("loading the page", { skip: lacking }, () => {});
} else {
  let gateway;
  before(async () => {
    gateway = await Gateway.start();
  });
  after(async () => {
    await closeBrowser();
    await gateway?.close();
  });

  const phone = { viewport: { width: 360, height: 740 } };
  const paints = (page) => page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
  const ground = (page) => page.evaluate(() => ({
    theme: document.documentElement.dataset.theme, bar: document.querySelector('meta[name="theme-color"]').content,
    page: getComputedStyle(document.body).backgroundColor,
  }));
  const light = { theme: "light", bar: "#fbfbfa", page: "rgb(251, 251, 250)" };
  const dark = { theme: "dark", bar: "#111416", page: "rgb(17, 20, 22)" };

  for (const [name, viewport] of [["wide", { width: 1280, height: 800 }], ["medium", { width: 900, height: 800 }], ["phone", phone.viewport]]) {
    test(`the first paint needs no module, and has the theme: ${name}`, async () => {
      for (const [colorScheme, choice, want] of [["light", null, light], ["dark", null, dark], ["light", "dark", dark], ["dark", "light", light]]) {
        const c = await (await browser()).newContext({ viewport, colorScheme });
        if (choice) await c.addInitScript((t) => localStorage.setItem("leat.theme", t), choice);
        const page = await c.newPage();
        const requests = [];
        await page.route(/index-[\w-]+\.js$/, (r) => void requests.push(r));
        await page.goto(gateway.url, { waitUntil: "commit" });
        await paints(page);
        assert.deepEqual(await ground(page), want);
        const word = page.getByText("Leat", { exact: true });
        const before = await word.boundingBox();
        assert.equal(await composer(page).count(), 0, "the page's script hasn't run");
        for (const r of requests) await r.continue();
        await composer(page).waitFor();
        assert.deepEqual(await ground(page), want);
        if (name === "wide") {
          const range = await page.evaluate(() => {
            const r = document.createRange();
            r.selectNodeContents(document.querySelector(".rail header strong"));
            return r.getBoundingClientRect().toJSON();
          });
          assert.deepEqual([range.x, range.y + range.height / 2], [before.x + 16, before.y + 24], "the word stays in its place");
        }
        await c.close();
      }
    });
  }

  test("the first paint on a slow phone", { skip: process.env.LEAT_FULL || process.env.LEAT_QUIET ? false : "needs LEAT_FULL=1, since it measures time" }, async () => {
    const times = [];
    for (let i = 0; i < 3; i++) {
      const c = await (await browser()).newContext(phone); // with an empty cache
      const page = await c.newPage();
      const session = await c.newCDPSession(page);
      await session.send("Network.enable");
      await session.send("Network.emulateNetworkConditions", { offline: false, latency: 150, downloadThroughput: 1.6e6 / 8, uploadThroughput: 750e3 / 8 });
      await session.send("Emulation.setCPUThrottlingRate", { rate: 4 });
      await page.goto(gateway.url, { waitUntil: "commit" });
      const paint = await (await paints(page)).jsonValue();
      await composer(page).waitFor();
      times.push([paint, await page.evaluate(() => performance.now())].map(Math.round));
      await c.close();
    }
    console.log(`# first paint and first key after ${times.map((t) => t.join(" and ")).join(", ")} ms`);
    // Other programs can delay a load, but not make it faster.
    const best = Math.min(...times.map(([paint]) => paint));
    assert.ok(best < 1500, `the first paint took ${best} ms`);
  });

  test("the theme follows the system, until another one is chosen", async () => {
    const page = await open(gateway, { colorScheme: "light" });
    const is = (want) => page.waitForFunction((t) => document.documentElement.dataset.theme === t, want);
    const toggle = (name) => page.getByRole("button", { name: `${name} theme` }).click();
    const storedChoice = (p = page) => p.evaluate(() => localStorage.getItem("leat.theme"));
    assert.deepEqual(await ground(page), light);
    await page.emulateMedia({ colorScheme: "dark" });
    await is("dark");
    assert.deepEqual(await ground(page), dark);
    // The button shows the other theme, and gives up the choice when that is the system's.
    await toggle("Light");
    await is("light");
    assert.equal(await storedChoice(), "light");
    await toggle("Dark");
    await is("dark");
    assert.equal(await storedChoice(), null);
    await page.emulateMedia({ colorScheme: "light" });
    await is("light");

    await page.getByRole("button", { name: "Settings" }).click();
    const radio = (name) => page.getByRole("group", { name: "Theme" }).getByRole("radio", { name });
    await radio("System").waitFor();
    assert.equal(await radio("System").isChecked(), true);
    await radio("Dark").check();
    await is("dark");
    await accessible(page, "the settings, dark");
    const tab = await page.context().newPage();
    await tab.goto(gateway.url);
    await tab.waitForFunction(() => document.documentElement.dataset.theme === "dark");
    await radio("System").check();
    await is("light");
    await tab.waitForFunction(() => document.documentElement.dataset.theme === "light");
    assert.equal(await storedChoice(tab), null);
    await accessible(page, "the settings, light");
    await wantClean(page);
  });

  test("the page can be installed", async () => {
    const page = await open(gateway);
    const session = await page.context().newCDPSession(page);
    const { url, errors, data } = await session.send("Page.getAppManifest");
    assert.deepEqual(errors, []);
    const manifest = JSON.parse(data);
    const at = (path) => new URL(path, url).href;
    assert.deepEqual([at(manifest.id), at(manifest.start_url), at(manifest.scope)], Array(3).fill(`${gateway.url}/`));
    for (const icon of [...manifest.icons, { src: "touch180.png", sizes: "180x180", type: "image/png" }]) {
      const answer = await page.evaluate(async (src) => {
        const picture = new Image();
        picture.src = src;
        await picture.decode();
        const { headers } = await fetch(src);
        return { type: headers.get("content-type"), size: `${picture.naturalWidth}x${picture.naturalHeight}` };
      }, at(icon.src));
      assert.equal(answer.type, icon.type);
      if (icon.sizes !== "any") assert.equal(answer.size, icon.sizes);
    }
    const { installabilityErrors } = await session.send("Page.getInstallabilityErrors");
    // Contexts of tests are private windows, in which nothing can be installed.
    assert.deepEqual(installabilityErrors.filter((e) => e.errorId !== "in-incognito"), []);
    await wantClean(page);
  });
}
