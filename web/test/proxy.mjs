// A network between a browser and a gateway that a test makes bad and good again. The browser's own switch for being offline
// closes nothing and holds what is open, so what becomes of connections is shown by this.

import { connect, createServer } from "node:net";

/** How often a slow connection passes something on, in milliseconds. */
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
      if (pair.dead) return; // half open: the browser is not told
      browser.destroy();
      gateway.destroy();
      this.pairs.delete(pair);
    };
    for (const s of [browser, gateway]) s.setNoDelay(true).on("error", end).on("close", end);
    browser.on("data", (d) => pair.dead || gateway.write(d));
    gateway.on("data", (d) => this.down(pair, d));
    this.setFlow(pair);
  }

  // down passes on what the gateway says, as fast as the network is.
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

  /** Passes all on, also what was held back. */
  pass() {
    this.mode = "pass";
    this.rate = Infinity;
    for (const p of this.pairs) this.setFlow(p);
  }

  /** Closes what is open. */
  disconnect() {
    for (const p of this.pairs) p.browser.destroy();
  }

  /** Closes what is open and what is to come. */
  refuse() {
    this.mode = "refuse";
    this.disconnect();
  }

  /** Connections are made, and nothing passes: not of old ones, not of new ones. */
  stall() {
    this.mode = "stall";
    for (const p of this.pairs) this.setFlow(p);
  }

  /** The other end of what is open is gone, and the browser is not told; new connections are good. */
  halfOpen() {
    for (const p of this.pairs) {
      p.dead = true;
      p.gateway.destroy();
    }
  }

  /** So many bytes a second to the browser, for each connection. */
  slow(rate) {
    this.rate = rate;
  }

  async close() {
    this.server.close();
    for (const p of this.pairs) for (const s of [p.browser, p.gateway]) s.destroy();
  }
}
