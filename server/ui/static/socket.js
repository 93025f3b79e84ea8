// The socket: it connects again by itself, goes on at the cursor, and sends each command until it has an answer.

// The first and the longest wait before a new try, in milliseconds.
const firstWait = 250;
const longestWait = 10000;
// The gateway says something at least every 15 s; a connection that is silent for longer is dead.
const silence = 40000;

const randomKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");

export class Socket {
  // on has: frame(frame) for snapshots and batches, state(text), unauthorized(), and error(frame) for a conversation.
  constructor(on) {
    this.on = on;
    this.wait = firstWait;
    this.ids = 0;
    this.waiting = new Map(); // id -> {frame, resolve, reject}
    this.following = null; // {conversation, cursor}
    this.ws = null;
    this.ready = false;
    this.stopped = false;
    addEventListener("online", () => this.hurry());
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.hurry());
    this.connect();
  }

  connect() {
    clearTimeout(this.timer);
    if (this.stopped) return;
    this.on.state("connecting");
    const ws = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/api/ws`);
    this.ws = ws;
    this.ready = false;
    const here = () => this.ws === ws; // frames of a connection that was left are dropped
    ws.onmessage = (m) => here() && this.take(JSON.parse(m.data));
    ws.onclose = (e) => here() && this.lost(e);
    this.watch();
  }

  close() {
    this.stopped = true;
    clearTimeout(this.timer);
    clearTimeout(this.watchdog);
    const ws = this.ws;
    this.ws = null;
    ws?.close();
  }

  watch() {
    clearTimeout(this.watchdog);
    this.watchdog = setTimeout(() => {
      const ws = this.ws;
      this.lost({ code: 0 });
      ws?.close();
    }, silence);
  }

  lost(e) {
    clearTimeout(this.watchdog);
    this.ws = null;
    this.ready = false;
    if (e.code === 1008) {
      this.close();
      this.on.unauthorized();
      return;
    }
    this.on.state("offline");
    this.timer = setTimeout(() => this.connect(), this.wait + Math.random() * this.wait);
    this.wait = Math.min(this.wait * 2, longestWait);
  }

  // hurry tries at once when the network or the person is back.
  hurry() {
    if (this.ws || this.stopped) return;
    this.wait = firstWait;
    this.connect();
  }

  take(f) {
    this.watch();
    switch (f.type) {
      case "hello":
        this.ready = true;
        this.wait = firstWait;
        this.on.state("online");
        this.subscribe();
        for (const { frame } of this.waiting.values()) this.send(frame);
        return;
      case "ping":
        this.send({ type: "pong" });
        return;
      case "snapshot":
      case "batch":
        if (!this.following || f.conversation !== this.following.conversation || !this.heard) return;
        if (this.on.frame(f)) this.following.cursor = f.cursor;
        else this.again();
        return;
      case "subscribed":
        // What comes before it belongs to a subscription that was left.
        this.heard = f.id === this.subscription;
        return;
      case "ack":
      case "rejected": {
        const w = this.waiting.get(f.id);
        if (!w) return;
        // A refusal that may pass is tried again, with the same key.
        if (f.type === "rejected" && f.retryAfter && w.tries++ < 5) {
          setTimeout(() => this.waiting.has(f.id) && this.ready && this.send(w.frame), f.retryAfter);
          return;
        }
        this.waiting.delete(f.id);
        if (f.type === "ack") w.resolve(f);
        else w.reject(new Error(f.error));
        return;
      }
      case "error":
        if (f.conversation && this.following?.conversation === f.conversation) {
          if (["unavailable", "internal", "timeout"].includes(f.reason)) setTimeout(() => this.ready && this.subscribe(), f.retryAfter || 1000);
          else this.on.error(f);
        } else if (f.reason === "unauthorized") {
          this.close();
          this.on.unauthorized();
        }
    }
  }

  send(frame) {
    if (this.ready) this.ws.send(JSON.stringify(frame));
  }

  // follow leaves the conversation that was followed, and follows another from its beginning.
  follow(conversation) {
    if (this.following) this.send({ type: "unsubscribe", conversation: this.following.conversation });
    this.following = conversation ? { conversation, cursor: "" } : null;
    if (this.ready) this.subscribe();
  }

  subscribe() {
    if (!this.following) return;
    this.heard = false;
    this.subscription = `s${++this.ids}`;
    const { conversation, cursor } = this.following;
    this.send({ type: "subscribe", id: this.subscription, conversation, ...(cursor && { after: cursor }) });
  }

  // again asks for a snapshot, after a frame that did not fit.
  again() {
    this.following.cursor = "";
    this.subscribe();
  }

  // command sends a command and returns its acknowledgement. It is sent again after a lost connection; its key makes the
  // repeat harmless.
  command(conversation, command) {
    return this.ask({ type: "command", conversation, command: { key: randomKey(), ...command } });
  }

  create(options) {
    return this.ask({ type: "create", create: { key: randomKey(), ...options } });
  }

  ask(frame) {
    const id = `c${++this.ids}`;
    frame.id = id;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { frame, resolve, reject, tries: 0 });
      this.send(frame);
    });
  }
}
