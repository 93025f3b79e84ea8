// Signing in by the gateway's token, and by the cookie of a site in front of the gateway.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { createServer, request } from "node:http";
import { connect } from "node:net";
import { after, test } from "node:test";

import { accessible } from "./axe.mjs";
import { answer, ask, closeBrowser, Gateway, idle, lacking, open, wantClean } from "./harness.mjs";

if (lacking) {
  test("signing in", { skip: lacking }, () => {});
} else {
  after(closeBrowser);

  test("sign in by token, stay signed in, sign out", async () => {
    const token = "a-token-of-the-tests-that-is-long-enough";
    const privateGateway = await Gateway.start([], { LEAT_API_TOKEN: token });
    try {
      const page = await open(privateGateway, { signedOut: true });
      const field = page.getByLabel("Access token");
      await field.waitFor();
      await page.waitForFunction(() => document.activeElement.id === "token");
      await field.fill("not it");
      await page.keyboard.press("Enter");
      await page.getByRole("alert").getByText("Invalid token").waitFor();
      await field.fill(token);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.locator('.connection[data-state="connected"]').waitFor();
      await ask(page, "echo let me in");
      await idle(page);
      const browserStorage = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage, cookie: document.cookie }));
      assert.ok(!browserStorage.includes(token), "scripts have nothing of it");
      assert.ok((await page.context().cookies()).every((c) => c.httpOnly && c.sameSite === "Strict"));
      await page.reload();
      await page.getByRole("article").getByText("echo let me in").waitFor();
      // The page can show the form before it reloads, as soon as the gateway refuses its socket.
      await page.evaluate(() => window.allowed.add("go"));
      await Promise.all([page.waitForEvent("load"), page.getByRole("button", { name: "Sign out" }).click()]);
      await field.waitFor();
      assert.equal(await page.getByText("let me in").count(), 0, "nothing of it is left");
      await wantClean(page, { console: /401/ });
    } finally {
      await privateGateway.close();
    }
  });

  for (const [theme, phone] of [["light", false], ["dark", true]]) {
    test(`where a token comes from, and who is signed in: ${theme}, ${phone ? "phone" : "wide"}`, async () => {
      const secret = "a secret of at least 32 bytes, of the tests";
      const api = "a-token-of-the-tests-that-is-long-enough";
      const encode = (o) => Buffer.from(JSON.stringify(o)).toString("base64url");
      const text = `${encode({ alg: "HS256", typ: "JWT" })}.${encode({ sub: "alice", exp: Math.floor(Date.now() / 1000) + 3600 })}`;
      const user = `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
      const privateGateway = await Gateway.start([], { LEAT_API_TOKEN: api, LEAT_USERS_SECRET: secret });
      const shot = (page, name) => page.screenshot({ path: process.env.SHOTS ? `${process.env.SHOTS}/${name}-${theme}.png` : undefined });
      try {
        for (const [name, token, want] of [["alice", user, /Signed in as\s+alice\s+May\s+Read, write and share own conversations\s+Access\s+A token that the operator.s identity service made for this user\.\s+Until\s+\S/],
          ["the operator", api, /Signed in as\s+Operator\s+May\s+Do everything[^]*LEAT_API_TOKEN/]]) {
          const page = await open(privateGateway, { signedOut: true, colorScheme: theme, viewport: phone ? { width: 360, height: 740 } : { width: 1280, height: 800 } });
          await page.getByText("Where do I get a token?").press("Enter");
          await page.getByText("Ask the person who runs this gateway.").waitFor();
          await accessible(page, "where a token comes from");
          await shot(page, `signin-${name}`);
          await page.getByLabel("Access token").fill(token);
          await page.keyboard.press("Enter");
          await page.locator('.connection[data-state="connected"]').waitFor();
          if (phone) await page.getByRole("button", { name: "Conversations" }).click();
          await page.getByRole("button", { name: "Settings" }).click();
          const account = page.getByRole("region", { name: "Account" });
          await account.waitFor();
          assert.match(await account.innerText(), want);
          await account.getByRole("button", { name: "Sign out" }).scrollIntoViewIfNeeded();
          await accessible(page, `the settings of ${name}`);
          await shot(page, `account-${name}`);
          await page.evaluate(() => window.allowed.add("go"));
          await Promise.all([page.waitForEvent("load"), account.getByRole("button", { name: "Sign out" }).click()]);
          await page.getByLabel("Access token").waitFor();
          await wantClean(page, { console: /401/ });
        }
      } finally {
        await privateGateway.close();
      }
    });
  }

  test("a site's own cookie signs its users in", async () => {
    const token = "a-token-of-the-tests-that-is-long-enough";
    const privateGateway = await Gateway.start([], { LEAT_API_TOKEN: token });
    // A site with its own pages in front of the gateway: its sign-in passes the gateway's cookie on.
    const site = createServer((req, res) => {
      if (req.url === "/welcome") {
        // The site requests the session in the name of its user, for the page's address.
        request({ host: "127.0.0.1", port: privateGateway.port, path: "/api/auth/session", method: "POST", headers: { Host: req.headers.host, Authorization: `Bearer ${token}` } }, (r) => {
          r.resume();
          res.writeHead(200, { "Content-Type": "text/html", "Set-Cookie": r.headers["set-cookie"] ?? [] });
          res.end('<!doctype html><html lang="en"><title>Site</title><h1>Welcome</h1><a href="/">Chat</a></html>');
        }).on("error", () => res.destroy()).end();
        return;
      }
      req.pipe(request({ host: "127.0.0.1", port: privateGateway.port, path: req.url, method: req.method, headers: req.headers }, (r) => {
        res.writeHead(r.statusCode, r.headers);
        r.pipe(res);
      }).on("error", () => res.destroy()));
    });
    site.on("upgrade", (req, socket, head) => {
      const upstream = connect(privateGateway.port, "127.0.0.1", () => {
        upstream.write(`${req.method} ${req.url} HTTP/1.1\r\n${req.rawHeaders.map((h, i) => (i % 2 ? `${h}\r\n` : `${h}: `)).join("")}\r\n`);
        upstream.write(head);
        socket.pipe(upstream).pipe(socket);
      });
      for (const s of [upstream, socket]) s.on("error", () => { upstream.destroy(); socket.destroy(); });
    });
    await new Promise((r) => site.listen(0, "127.0.0.1", r));
    const url = `http://127.0.0.1:${site.address().port}`;
    try {
      const page = await open({ url }, { path: "/welcome", signedOut: true });
      await page.getByRole("link", { name: "Chat" }).click();
      await page.locator('.connection[data-state="connected"]').waitFor();
      assert.equal(await page.getByRole("button", { name: "Sign in" }).count(), 0);
      await ask(page, "echo by the cookie");
      await idle(page);
      assert.match(await answer(page).innerText(), /by the cookie/);
      await wantClean(page, { console: /404/ });
    } finally {
      site.closeAllConnections();
      site.close();
      await privateGateway.close();
    }
  });
}
