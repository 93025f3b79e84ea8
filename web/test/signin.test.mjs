// Signing in by the gateway's token, and by the cookie of a site in front of the gateway.

import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import { connect } from "node:net";
import { after, test } from "node:test";

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
