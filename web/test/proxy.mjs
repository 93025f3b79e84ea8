// A faulty network between a browser and a gateway. The browser's own offline switch closes no connections, so a proxy is needed to
// test what happens to connections.

import { connect, createServer } from "node:net";

/** The interval in which a slow connection passes data, in milliseconds. */
const beat = 50;

export class Network {
  static async start(gateway) {
    const n = new Network(gateway.port);
    await new Promise((resolve) => n.server.listen(0, "127.0.0.1", resolve));
    n.url = `http://127.0.0.1:${n.server.address().port}`;
    return n;
  }

  constructor(port) {
    this.pairs = new Set();
    this.mode = "pass";
    this.rate = Infinity;
    this.server = createServer((browser) => this.take(browser, port));
  }

  take(browser, port) {
    if (this.mode === "refuse") {
      browser.destroy();
      return;
    }
    const gateway = connect(port, "127.0.0.1");
    const pair = { browser, gateway, dead: false };
    this.pairs.add(pair);
    const end = () => {
      if (pair.dead) return; // half open: the browser isn't notified
      browser.destroy();
      gateway.destroy();
      this.pairs.delete(pair);
    };
    for (const s of [browser, gateway]) s.setNoDelay(true).on("error", end).on("close", end);
    browser.on("data", (d) => pair.dead || gateway.write(d));
    gateway.on("data", (d) => this.down(pair, d));
    this.setFlow(pair);
  }

  // down passes data from the gateway at the configured rate.
  down(pair, data) {
    if (pair.dead) return;
    if (this.rate === Infinity) {
      pair.browser.write(data);
      return;
    }
    pair.gateway.pause();
    const step = Math.max(1, Math.floor((this.rate * beat) / 1000));
    const timer = setInterval(() => {
      if (this.mode === "stall") return;
      pair.browser.write(data.subarray(0, step));
      data = data.subarray(step);
      if (data.length > 0) return;
      clearInterval(timer);
      this.setFlow(pair);
    }, beat);
  }

  setFlow(pair) {
    for (const s of [pair.browser, pair.gateway]) {
      if (this.mode === "stall") s.pause();
      else s.resume();
    }
  }

  /** Passes all data, also what was held back. */
  pass() {
    this.mode = "pass";
    this.rate = Infinity;
    for (const p of this.pairs) this.setFlow(p);
  }

  /** Closes the open connections. */
  disconnect() {
    for (const p of this.pairs) p.browser.destroy();
  }

  /** Closes the open connections and all new ones. */
  refuse() {
    this.mode = "refuse";
    this.disconnect();
  }

  /** Accepts connections but passes no data on any. */
  stall() {
    this.mode = "stall";
    for (const p of this.pairs) this.setFlow(p);
  }

  /** Closes the gateway's side of open connections without notifying the browser. New connections work. */
  halfOpen() {
    for (const p of this.pairs) {
      p.dead = true;
      p.gateway.destroy();
    }
  }

  /** Limits each connection to a number of bytes per second to the browser. */
  slow(rate) {
    this.rate = rate;
  }

  async close() {
    this.server.close();
    for (const p of this.pairs) for (const s of [p.browser, p.gateway]) s.destroy();
  }
}
