// The page: who may open it, which conversation is shown, what is typed.

import { Transcript } from "./transcript.js";
import { Socket } from "./socket.js";
import { Log, lastMessages } from "./log.js";

const $ = (id) => document.getElementById(id);

async function api(path, options) {
  const res = await fetch(path, options);
  const body = res.status === 204 ? {} : await res.json().catch(() => ({}));
  if (!res.ok) throw Object.assign(new Error(body.error || res.statusText), { status: res.status });
  return body;
}

// Who may open it.

async function begin() {
  let session;
  try {
    session = await api("/api/session");
  } catch (err) {
    // The gateway is not there; it may come back.
    $("app").hidden = false;
    $("connection").textContent = "offline";
    setTimeout(begin, 2000);
    return;
  }
  if (session.tokenNeeded && !session.authenticated) {
    login();
    return;
  }
  $("logout").hidden = !session.tokenNeeded;
  $("login").hidden = true;
  $("app").hidden = false;
  open();
}

function login() {
  $("app").hidden = true;
  $("login").hidden = false;
  $("token").focus();
}

$("login").onsubmit = async (event) => {
  event.preventDefault();
  const token = $("token").value;
  try {
    await api("/api/session", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }) });
    $("token").value = "";
    $("login-error").textContent = "";
    begin();
  } catch (err) {
    $("login-error").textContent = err.status === 401 ? "That is not the token." : err.message;
  }
};

$("logout").onclick = async () => {
  await api("/api/session", { method: "DELETE" });
  location.reload();
};

// The conversation.

let socket = null;
let current = ""; // id of the conversation that is shown
let conversations = [];
let cursorSeq = 0;
let epoch = "";
let frame = 0; // of the animation, when the log is drawn
const transcript = new Transcript();
const log = new Log($("messages"), $("requests"), $("state"), (turn, request, decision, text) =>
  socket.command(current, { type: "answer", turn, request, decision, text }));

function open() {
  socket?.close();
  socket = new Socket({
    frame: take,
    state: (s) => {
      $("connection").textContent = s;
      $("connection").dataset.state = s;
      if (s === "online") refresh();
    },
    unauthorized: begin,
    error: (f) => {
      show("");
      $("state").textContent = f.error;
      refresh();
    },
  });
  show(decodeURIComponent(location.hash.slice(1)));
}

addEventListener("hashchange", () => show(decodeURIComponent(location.hash.slice(1))));

function show(id) {
  if (id === current && id) return;
  current = id;
  epoch = "";
  transcript.reset({ seq: 0, messages: [], turns: [] });
  log.clear();
  $("earlier").hidden = true;
  if (decodeURIComponent(location.hash.slice(1)) !== id) history.replaceState(null, "", id ? `#${encodeURIComponent(id)}` : location.pathname);
  socket.follow(id);
  list();
  buttons();
  $("input").focus();
}

// take folds a frame in. It returns false where it does not fit.
function take(f) {
  if (f.type === "snapshot") {
    transcript.reset(f.transcript, f.earlier);
    epoch = f.epoch;
    cursorSeq = f.transcript.seq || 0;
  } else {
    if (!epoch || !transcript.batch(f.events)) return false;
    cursorSeq = f.seq;
    if (f.events.some((e) => e.type === "turn.end" || e.type === "conversation.update")) refresh();
  }
  if (!frame) frame = requestAnimationFrame(draw);
  return true;
}

function draw() {
  frame = 0;
  const view = $("log");
  const atEnd = view.scrollHeight - view.scrollTop - view.clientHeight < 60;
  lastMessages(transcript);
  log.draw(transcript);
  $("earlier").hidden = !transcript.earlier;
  if (atEnd) view.scrollTop = view.scrollHeight;
  buttons();
}

const unfinished = () => [...transcript.turns.values()].filter((t) => t.state !== "ended" && !t.parent);

function buttons() {
  $("stop").hidden = unfinished().length === 0;
}

$("earlier").onclick = async () => {
  const before = transcript.order[0]?.id;
  if (!before) return;
  $("earlier").disabled = true;
  try {
    // A page that is older than what has come meanwhile is asked for again.
    for (let i = 0; i < 5; i++) {
      const page = await api(`/api/conversations/${encodeURIComponent(current)}/transcript?before=${encodeURIComponent(before)}`);
      if (page.epoch !== epoch) continue;
      const view = $("log");
      const below = view.scrollHeight - view.scrollTop;
      if (transcript.addPage({ ...page, seq: page.seq }, before, cursorSeq)) {
        draw();
        view.scrollTop = view.scrollHeight - below;
        break;
      }
    }
  } catch (err) {
    $("state").textContent = err.message;
  } finally {
    $("earlier").disabled = false;
  }
};

// The list.

async function refresh() {
  try {
    const [c, a] = await Promise.all([api("/api/conversations"), api("/api/agents")]);
    conversations = c.conversations;
    const chosen = $("agent").value;
    $("agent").replaceChildren(...a.agents.map((x) => {
      const o = document.createElement("option");
      o.value = o.textContent = x.name;
      o.selected = chosen ? x.name === chosen : !!x.default;
      return o;
    }));
    list();
  } catch (err) {
    if (err.status === 401) begin();
  }
}

function list() {
  $("conversations").replaceChildren(...conversations.map((c) => {
    const a = document.createElement("a");
    a.href = `#${encodeURIComponent(c.id)}`;
    a.textContent = c.title;
    a.title = `${c.id}\n${new Date(c.updatedAt).toLocaleString()}${c.agent ? `\n${c.agent}` : ""}`;
    if (c.id === current) a.setAttribute("aria-current", "page");
    return a;
  }));
}

$("create").onclick = () => {
  show("");
  $("input").focus();
};

// What is typed.

$("composer").onsubmit = async (event) => {
  event.preventDefault();
  const text = $("input").value;
  if (!text.trim()) return;
  $("input").value = "";
  grow();
  try {
    if (!current) {
      const title = text.trim().split("\n")[0];
      const made = await socket.create({ agent: $("agent").value, title: [...title].slice(0, 60).join("") });
      show(made.conversation);
    }
    await socket.command(current, { type: "send", message: { text, source: "page" } });
    $("log").scrollTop = $("log").scrollHeight;
  } catch (err) {
    $("state").textContent = err.message;
    if (!$("input").value) $("input").value = text; // nothing typed is lost
    grow();
  }
};

$("stop").onclick = () => {
  // The last first, so that none starts because the one before it was stopped.
  for (const t of unfinished().reverse()) socket.command(current, { type: "stop", turn: t.id }).catch((err) => ($("state").textContent = err.message));
};

$("input").onkeydown = (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    $("composer").requestSubmit();
  }
};

function grow() {
  $("input").rows = Math.min(12, $("input").value.split("\n").length);
}
$("input").oninput = grow;

begin();
