// The chat widget of Leat's web channel. A page embeds it with
//
//   <script src="https://chat.example/web/widget.js" data-title="Help" defer></script>
//
// docs/channels/web.md describes its attributes, its CSS variables and the frames. It has no dependencies, is not minified, and touches
// nothing of the page except one element at the end of the body, or in the element that data-target names.
(() => {
  "use strict";

  const script = document.currentScript ?? document.querySelector('script[src*="widget.js"]');
  const options = { ...script.dataset };
  const base = new URL(options.server ? options.server.replace(/\/?$/, "/") : ".", options.server ? location.href : script.src).href;
  const title = options.title || "Chat";
  const agentName = options.agent || "Assistant";
  const maxFile = 20 << 20; // bytes; the server's limit

  // ---- Elements ----

  /** Creates an element. Attributes that are functions are listeners; false and undefined ones are left out. */
  function create(tag, attributes = {}, ...children) {
    const e = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (typeof value === "function") e.addEventListener(name, value);
      else if (value !== undefined && value !== false) e.setAttribute(name, value === true ? "" : value);
    }
    e.append(...children);
    return e;
  }

  /** Creates an icon from the path of a 24-pixel drawing. */
  function icon(path) {
    const ns = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(ns, "svg");
    svg.setAttribute("viewBox", "0 0 24 24");
    svg.setAttribute("aria-hidden", "true");
    const p = document.createElementNS(ns, "path");
    p.setAttribute("d", path);
    svg.append(p);
    return svg;
  }

  const icons = {
    chat: "M4 4h16v12H9l-5 4z",
    close: "M6 6l12 12M18 6L6 18",
    send: "M4 12h15M13 6l6 6-6 6",
    stop: "M7 7h10v10H7z",
    file: "M8 12.5l6.5-6.5a3 3 0 0 1 4.2 4.2L10 19a5 5 0 0 1-7-7l8-8",
  };

  // ---- Markdown ----
  //
  // The renderer makes nodes and never parses HTML, so a text can't become markup. It knows what agents write: paragraphs, headings,
  // lists, quotes, code, tables, rules, emphasis and links. A text that grows keeps the nodes of its unchanged blocks.

  const fence = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
  const item = /^( *)([-*+]|\d{1,9}[.)])(?: +|$)/;
  const heading = /^ {0,3}(#{1,6})\s+(.*)$/;
  const rule = /^ {0,3}([-*_])(?: *\1){2,} *$/;
  const tableRule = /^ *\|? *:?-+:? *(\| *:?-+:? *)*\|? *$/;
  const maxDepth = 6; // of lists and quotes in each other

  /** Splits a text into blocks: the kind of each, and its lines. */
  function blocks(text) {
    const lines = text.replace(/\r\n?/g, "\n").split("\n");
    const list = [];
    for (let i = 0; i < lines.length; ) {
      const start = i;
      const line = lines[i];
      let kind = "p";
      const open = fence.exec(line);
      if (line.trim() === "") {
        i++;
        continue;
      } else if (open) {
        kind = "pre";
        for (i++; i < lines.length; i++) {
          const close = fence.exec(lines[i]);
          if (close && close[1].startsWith(open[1]) && !close[2]) break;
        }
        i++;
      } else if (heading.test(line)) {
        kind = "h";
        i++;
      } else if (rule.test(line)) {
        kind = "hr";
        i++;
      } else if (/^ {0,3}>/.test(line)) {
        kind = "quote";
        while (i < lines.length && /^ {0,3}>/.test(lines[i])) i++;
      } else if (item.test(line)) {
        kind = "list";
        const ordered = /\d/.test(item.exec(line)[2]);
        for (i++; i < lines.length; i++) {
          const next = lines[i].trim() === "" ? lines[i + 1] : lines[i];
          const m = next === undefined ? null : item.exec(next);
          if (next === undefined || next.trim() === "") break;
          if (m && m[1].length < 2 && /\d/.test(m[2]) !== ordered) break;
          if (!m && !/^ {2,}/.test(next) && (lines[i].trim() === "" || interrupts(next))) break;
        }
      } else if (line.includes("|") && i + 1 < lines.length && tableRule.test(lines[i + 1]) && lines[i + 1].includes("-")) {
        kind = "table";
        while (i < lines.length && lines[i].includes("|")) i++;
      } else {
        for (i++; i < lines.length && lines[i].trim() !== "" && !interrupts(lines[i]) && !item.test(lines[i]); i++);
      }
      list.push({ kind, lines: lines.slice(start, i) });
    }
    return list;
  }

  const interrupts = (line) => fence.test(line) || heading.test(line) || rule.test(line) || /^ {0,3}>/.test(line);

  /** Returns the element of a block. */
  function block({ kind, lines }, depth) {
    switch (kind) {
      case "pre": {
        const [, mark, language] = fence.exec(lines[0]);
        const close = lines.length > 1 ? fence.exec(lines.at(-1)) : null;
        const isClosed = close && close[1].startsWith(mark) && !close[2];
        const code = create("code", {}, lines.slice(1, isClosed ? -1 : undefined).join("\n"));
        return create("pre", { tabindex: "0", "aria-label": `Code ${language.trim()}`.trim() }, code);
      }
      case "h": {
        const [, marks, content] = heading.exec(lines[0]);
        let text = content.trimEnd();
        while (text.endsWith("#")) text = text.slice(0, -1); // a closing mark; a regular expression would take quadratic time
        // The headings of an answer are below those of the widget.
        return create(`h${Math.min(6, marks.length + 2)}`, {}, inline(text.trimEnd()));
      }
      case "hr":
        return create("hr");
      case "quote":
        return render(create("blockquote"), lines.map((l) => l.replace(/^ {0,3}> ?/, "")).join("\n"), depth + 1);
      case "list":
        return listOf(lines, depth);
      case "table":
        return tableOf(lines);
    }
    return create("p", {}, inline(lines.map((l) => l.trimStart()).join("\n")));
  }

  function listOf(lines, depth) {
    const [, , marker] = item.exec(lines[0]);
    const start = parseInt(marker, 10);
    const list = isNaN(start) ? create("ul") : create("ol", { start });
    const indent = item.exec(lines[0])[1].length;
    const items = [];
    let width = 0;
    for (const line of lines) {
      const m = item.exec(line);
      if (m && m[1].length <= indent + 1) {
        width = m[0].length;
        items.push([line.slice(width)]);
      } else {
        // The indentation of what belongs to the item is removed, up to the width of its marker.
        const spaces = /^ */.exec(line)[0].length;
        items.at(-1).push(line.slice(Math.min(spaces, Math.max(width, 2))));
      }
    }
    for (const text of items) {
      const first = text.join("\n").trim();
      const inner = blocks(first);
      const li = create("li");
      if (inner.length === 1 && inner[0].kind === "p") li.append(inline(first));
      else render(li, first, depth + 1);
      list.append(li);
    }
    return list;
  }

  function tableOf(lines) {
    const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((c) => c.trim().replaceAll("\\|", "|"));
    const row = (line, tag) => create("tr", {}, ...cells(line).map((c) => create(tag, {}, inline(c))));
    const table = create("table", {}, create("thead", {}, row(lines[0], "th")), create("tbody", {}, ...lines.slice(2).map((l) => row(l, "td"))));
    return create("div", { class: "table", tabindex: "0", role: "group", "aria-label": "Table" }, table);
  }

  /** Returns a text with emphasis, code and links as nodes. */
  function inline(text, depth = 0) {
    const out = document.createDocumentFragment();
    const missing = new Set(); // delimiters that don't occur behind the current position
    let plain = "";
    const flush = () => {
      if (plain) out.append(plain);
      plain = "";
    };
    const add = (node) => {
      flush();
      out.append(node);
    };
    const find = (mark, from) => {
      if (missing.has(mark)) return -1;
      const at = text.indexOf(mark, from);
      if (at < 0) missing.add(mark);
      return at;
    };
    for (let i = 0; i < text.length; ) {
      const c = text[i];
      if (c === "\\" && /[!-/:-@[-`{-~]/.test(text[i + 1] ?? "")) {
        plain += text[i + 1];
        i += 2;
        continue;
      }
      if (c === "\n") {
        plain = plain.trimEnd();
        add(create("br"));
        i++;
        continue;
      }
      if (c === "`") {
        const mark = /^`+/.exec(text.slice(i, i + 20))[0];
        const end = find(mark, i + mark.length);
        if (end > 0) {
          add(create("code", {}, text.slice(i + mark.length, end).replaceAll("\n", " ").replace(/^ (.+) $/, "$1")));
          i = end + mark.length;
          continue;
        }
        plain += mark;
        i += mark.length;
        continue;
      }
      if ((c === "[" || (c === "!" && text[i + 1] === "[")) && depth < 3) {
        const m = /^!?\[((?:[^[\]\\]|\\.|\[[^[\]]*\]){0,1000})\]\(\s*<?([^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)*)>?(?:\s+"[^"]*")?\s*\)/.exec(text.slice(i, i + 4000));
        if (m) {
          add(link(m[2], inline(m[1] || m[2], depth + 1)));
          i += m[0].length;
          continue;
        }
      }
      if (c === "h" && /^https?:\/\//.test(text.slice(i, i + 8)) && !/\w/.test(text[i - 1] ?? "") && depth === 0) {
        const address = /^[^\s<>"`]+/.exec(text.slice(i, i + 2000))[0].replace(/[.,;:!?'*_~)\]]+$/, "");
        add(link(address, address));
        i += address.length;
        continue;
      }
      const mark = /^(\*\*\*|\*\*|__|~~|\*|_)/.exec(text.slice(i, i + 3))?.[0];
      if (mark && depth < 4 && /\S/.test(text[i + mark.length] ?? " ") && !(mark[0] === "_" && /\w/.test(text[i - 1] ?? ""))) {
        let end = find(mark, i + mark.length + 1);
        // A single mark must not end at the first half of a double one.
        while (mark.length === 1 && end > 0 && (text[end + 1] === mark || text[end - 1] === mark)) end = find(mark, end + 2);
        if (end > 0 && /\S/.test(text[end - 1]) && !(mark[0] === "_" && /\w/.test(text[end + mark.length] ?? ""))) {
          const tag = { "***": "strong", "**": "strong", __: "strong", "~~": "del" }[mark] ?? "em";
          const inner = inline(text.slice(i + mark.length, end), depth + 1);
          add(create(tag, {}, mark === "***" ? create("em", {}, inner) : inner));
          i = end + mark.length;
          continue;
        }
        plain += mark;
        i += mark.length;
        continue;
      }
      plain += c;
      i++;
    }
    flush();
    return out;
  }

  /** Returns a link to a page of the web, or for any other address only its text. */
  function link(address, content) {
    let url;
    try {
      url = new URL(address);
    } catch {
      return create("span", {}, content);
    }
    if (url.protocol !== "https:" && url.protocol !== "http:") return create("span", {}, content);
    return create("a", { href: url.href, target: "_blank", rel: "noopener noreferrer nofollow" }, content);
  }

  /** Shows a text in an element. The blocks that it had before and that haven't changed keep their elements. */
  function render(element, text, depth = 0) {
    if (depth > maxDepth) {
      element.textContent = text;
      return element;
    }
    const list = blocks(text);
    const old = element.blocks ?? [];
    let same = 0;
    const key = (b) => b.kind + b.lines.join("\n");
    const keys = list.map(key);
    while (same < keys.length && same < old.length && keys[same] === old[same]) same++;
    while (element.childNodes.length > same) element.lastChild.remove();
    for (const b of list.slice(same)) element.append(block(b, depth));
    element.blocks = keys;
    return element;
  }

  // ---- Session ----

  const storageKey = `leat.session ${base}`;
  const openKey = `leat.open ${base}`;

  /** Storage that works without permission, but then not longer than the page. */
  function storage(name) {
    const memory = new Map();
    const attempt = (f, fallback) => {
      try {
        return f(window[name]);
      } catch {
        return fallback();
      }
    };
    return {
      get: (k) => attempt((s) => s.getItem(k), () => memory.get(k) ?? null),
      set: (k, v) => attempt((s) => s.setItem(k, v), () => memory.set(k, v)),
    };
  }

  const local = storage("localStorage");
  const tab = storage("sessionStorage");
  let session = local.get(storageKey) ?? "";
  if (!/^wv_[\w-]+$/.test(session)) session = ""; // a browser accepts no other text as a subprotocol

  /** Returns a UUIDv7. The server derives the id of a message from its time. */
  function newKey() {
    const b = crypto.getRandomValues(new Uint8Array(16));
    let ms = Date.now();
    for (let i = 5; i >= 0; i--, ms = Math.floor(ms / 256)) b[i] = ms % 256;
    b[6] = (b[6] & 0x0f) | 0x70;
    b[8] = (b[8] & 0x3f) | 0x80;
    return [...b].map((x, i) => ([4, 6, 8, 10].includes(i) ? "-" : "") + x.toString(16).padStart(2, "0")).join("");
  }

  // ---- What is shown ----

  /** Items are the messages in order: of the visitor ("user"), answers ("answer") and notices ("note"). */
  let items = [];
  let ended = new Set(); // turns of which nothing more is shown
  const dirty = new Set();

  function add(i, before) {
    const at = before ? items.indexOf(before) : -1;
    i.element = create("div", { class: `message ${i.kind}` });
    if (at < 0) {
      items.push(i);
      log.append(i.element);
    } else {
      items.splice(at, 0, i);
      before.element.before(i.element);
    }
    touch(i);
    return i;
  }

  function remove(i) {
    items = items.filter((o) => o !== i);
    dirty.delete(i);
    i.element.remove();
  }

  function answer(turn) {
    return items.find((i) => i.turn === turn) ?? add({ kind: "answer", turn, text: "", tools: new Map(), files: [], questions: [] });
  }

  /** Redraws an item in the next frame. */
  function touch(i) {
    if (dirty.size === 0) (document.hidden ? setTimeout : requestAnimationFrame)(draw);
    dirty.add(i);
  }

  function draw() {
    const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    for (const i of dirty) ({ user: drawUser, answer: drawAnswer, note: drawNote })[i.kind](i);
    dirty.clear();
    const writing = items.some((i) => i.kind === "answer" && !i.ended);
    stopButton.hidden = !writing;
    if (writing !== root.isWriting) {
      root.isWriting = writing;
      status.textContent = writing ? `${agentName} is writing…` : items.length > 0 ? `${agentName} has answered.` : "";
    }
    if (isAtEnd) log.scrollTop = log.scrollHeight;
  }

  function drawUser(i) {
    const label = create("span", { class: "hidden" }, i.name ? `${i.name}: ` : "You: ");
    const text = create("div", { class: "bubble" }, label, ...(i.name ? [create("b", {}, i.name), create("br")] : []), i.text);
    if (i.files?.length > 0) text.append(create("div", { class: "files" }, ...i.files.map(fileOf)));
    i.element.replaceChildren(text);
    i.element.classList.toggle("pending", !!i.pending);
    if (i.problem) {
      const again = create("button", { type: "button", click: () => resend(i) }, "Try again");
      i.element.append(create("div", { class: "problem", role: "alert" }, `${i.problem} `, again));
    }
  }

  function drawNote(i) {
    i.body ??= i.element.appendChild(create("div", { class: "bubble" }));
    render(i.body, i.text);
  }

  const states = { running: ["◌", "running"], done: ["✓", "done"], failed: ["✕", "failed"], denied: ["⊘", "denied"] };

  function drawAnswer(i) {
    const e = i.element;
    if (!i.body) {
      i.toolList = create("ul", { class: "tools", "aria-label": "Tools" });
      i.body = create("div", { class: "bubble" });
      i.extra = create("div");
      e.append(create("span", { class: "hidden" }, `${agentName}: `), i.toolList, i.body, i.extra);
    }
    e.setAttribute("aria-busy", String(!i.ended)); // so that it is read when it is complete
    i.toolList.hidden = i.tools.size === 0;
    i.toolList.replaceChildren(...[...i.tools.values()].map((t) => {
      const [sign, name] = states[i.ended && t.state === "running" ? "failed" : t.state] ?? states.running;
      return create("li", { class: name }, create("span", { class: "sign", "aria-hidden": "true" }, sign), create("b", {}, t.name ?? "tool"),
        ...(t.summary ? [" ", create("code", {}, t.summary)] : []), create("span", { class: "hidden" }, ` ${name}`));
    }));
    render(i.body, i.text);
    i.body.hidden = i.text === "";
    // All of these elements are made once, because a button in them may have the focus.
    const extra = i.ended ? [] : i.questions.map((q) => (q.element ??= drawQuestion(q)));
    if (!i.ended && extra.length === 0) extra.push((i.typing ??= create("div", { class: "typing", "aria-hidden": "true" }, create("i"), create("i"), create("i"))));
    if (i.files.length > 0) {
      i.fileList ??= create("div", { class: "files" });
      i.fileList.append(...i.files.slice(i.fileList.children.length).map(fileOf));
      extra.unshift(i.fileList);
    }
    if (i.problem) extra.push((i.alert ??= create("div", { class: "problem", role: "alert" }, i.problem)));
    if (extra.length !== i.extra.children.length || extra.some((x, n) => x !== i.extra.children[n])) i.extra.replaceChildren(...extra);
  }

  function drawQuestion(q) {
    const text = render(create("div", { id: `q${q.question}` }), q.text ?? "");
    const buttons = (q.choices ?? []).map((name, choice) => create("button", {
      type: "button",
      click: () => {
        for (const b of buttons) b.disabled = true;
        if (!send({ type: "answer", question: q.question, choice })) for (const b of buttons) b.disabled = false;
        input.focus();
      },
    }, name));
    const hint = buttons.length > 0 ? [] : [create("small", {}, "Write your answer below.")];
    return create("div", { class: "question", role: "group", "aria-labelledby": `q${q.question}` }, text, ...buttons, ...hint);
  }

  /** Returns the element of a file. Its download needs the session, which is sent in a header and not in the address. */
  function fileOf(f) {
    if (f.element) return f.element;
    const name = f.name || f.alt || "file";
    if (!f.url) return (f.element = create("span", { class: "file" }, `📎 ${name}`));
    if (/^https?:/.test(f.url)) return (f.element = create("span", { class: "file" }, link(f.url, `📎 ${name}`)));
    const load = async () => {
      const response = await fetch(base + f.url, { headers: { "Leat-Session": session } });
      if (!response.ok) throw new Error(response.status);
      return URL.createObjectURL(await response.blob());
    };
    const button = create("button", {
      type: "button",
      class: "file",
      click: async () => {
        try {
          const href = await load();
          create("a", { href, download: name }).click();
          setTimeout(() => URL.revokeObjectURL(href), 60_000);
        } catch {
          button.textContent = `⚠ ${name} is not available`;
        }
      },
    }, `📎 ${name}`);
    f.element = create("span", {}, button);
    if (/^image\/(png|jpeg|gif|webp|avif)$/.test(f.mime ?? "") && (f.size ?? 0) <= maxFile) {
      load().then((src) => button.before(create("img", { src, alt: f.alt || name })), () => {});
    }
    return f.element;
  }

  // ---- Frames ----

  const handlers = {
    session(f) {
      if (f.session !== session) {
        if (session) clear(); // the server doesn't accept the old one
        session = f.session;
        local.set(storageKey, session);
      }
      for (const i of items.filter((o) => o.pending && !o.problem)) transmit(i);
    },
    history(f) {
      const pending = items.filter((i) => i.pending);
      clear();
      for (const m of f.messages ?? []) {
        if (m.role === "user") add({ kind: "user", text: m.content ?? "", name: m.name, files: m.files, message: m.message });
        else if (m.turn) {
          Object.assign(answer(m.turn), { text: m.content ?? "", files: m.files ?? [], ended: true });
          ended.add(m.turn);
        } else add({ kind: "note", text: m.content ?? "" });
      }
      for (const i of pending) add(i);
    },
    user(f) {
      const own = items.find((i) => i.key && i.key === f.key);
      const shown = f.message && items.find((i) => i.message === f.message);
      if (own && shown && own !== shown) remove(own);
      else if (own) touch(Object.assign(own, { pending: false, problem: "", message: f.message }));
      else if (!shown) add({ kind: "user", text: f.content ?? "", files: f.files, key: f.key, message: f.message });
    },
    typing(f) {
      if (f.turn) answer(f.turn);
    },
    stream(f) {
      const i = answer(f.turn);
      i.text += f.delta;
      touch(i);
    },
    replace(f) {
      touch(Object.assign(answer(f.turn), { text: f.text ?? "" }));
    },
    tool(f) {
      const i = answer(f.turn);
      i.tools.set(f.call, f);
      touch(i);
    },
    media(f) {
      const i = answer(f.turn);
      i.files.push(...f.files);
      touch(i);
    },
    question(f) {
      const i = answer(f.turn);
      if (!i.questions.some((q) => q.question === f.question)) i.questions.push(f);
      touch(i);
    },
    answered(f) {
      const i = answer(f.turn);
      i.questions = i.questions.filter((q) => q.question !== f.question);
      touch(i);
    },
    stream_done(f) {
      const i = answer(f.turn);
      i.ended = true;
      if (!i.text && i.tools.size === 0 && i.files.length === 0) remove(i); // taken back, or stopped before it wrote anything
      touch(i);
      ended.add(f.turn);
    },
    message(f) {
      if (!f.turn) return void add({ kind: "note", text: f.content ?? "" });
      touch(Object.assign(answer(f.turn), { ended: true, problem: f.content }));
      ended.add(f.turn);
    },
    error(f) {
      const own = f.key && items.find((i) => i.key === f.key);
      if (!own) return void (f.text && add({ kind: "note", text: f.text }));
      if (f.retry) setTimeout(() => own.pending && transmit(own), f.retry * 1000);
      else touch(Object.assign(own, { problem: f.text }));
    },
  };

  function receive(f) {
    if (f.id) after = f.id;
    if (f.turn && ended.has(f.turn)) return;
    handlers[f.type]?.(f); // unknown frames are ignored
  }

  function clear() {
    items = [];
    ended = new Set();
    dirty.clear();
    log.replaceChildren();
    stopButton.hidden = true;
  }

  // ---- Connection ----

  let socket; // undefined while disconnected
  let after; // the number of the last frame; undefined until there is one
  let failures = 0;
  let timer;

  function connect() {
    clearTimeout(timer);
    timer = undefined;
    const url = new URL("ws", base);
    url.protocol = url.protocol.replace("http", "ws");
    if (session && after !== undefined) url.searchParams.set("after", after);
    const s = new WebSocket(url, session ? ["leat.chat", session] : ["leat.chat"]); // proxies log addresses, but not subprotocols
    socket = s;
    s.onmessage = (e) => {
      if (socket !== s) return;
      failures = 0;
      root.dataset.connection = "connected";
      receive(JSON.parse(e.data));
    };
    s.onclose = () => {
      if (socket !== s) return;
      socket = undefined;
      root.dataset.connection = "disconnected";
      // Half of the wait is random, so that the visitors of a gateway that restarts don't come back all at once.
      timer = setTimeout(connect, Math.min(30_000, 500 * 2 ** failures++) * (0.5 + Math.random() / 2));
    };
  }

  /** Reconnects without a wait, when there is reason to believe that it works. */
  function reconnect() {
    if (timer !== undefined) connect();
  }

  function send(f) {
    if (socket?.readyState !== 1) return false;
    socket.send(JSON.stringify(f));
    return true;
  }

  /** Sends a message. If there is no connection, the next one sends it. Its key makes a repetition harmless. */
  function transmit(i) {
    send({ type: "message", content: i.text, key: i.key, files: i.refs });
  }

  function resend(i) {
    i.problem = "";
    touch(i);
    transmit(i);
  }

  // ---- Composer ----

  const attached = []; // {name, size, ref or undefined while it is uploaded, problem, element}

  function attach(files) {
    for (const file of files) {
      const a = { name: file.name, size: file.size, mime: file.type };
      const note = create("span", {}, " …");
      const drop = create("button", { type: "button", "aria-label": `Remove ${file.name}`, click: () => {
        attached.splice(attached.indexOf(a), 1);
        a.element.remove();
        input.focus();
      } }, "×");
      a.element = create("span", { class: "file" }, `📎 ${file.name}`, note, drop);
      attached.push(a);
      chips.append(a.element);
      a.ready = upload(file).then((ref) => {
        a.ref = ref;
        note.textContent = "";
      }, (e) => {
        a.problem = e.message;
        note.textContent = ` – ${e.message}`;
        status.textContent = `${file.name}: ${e.message}`;
      });
    }
  }

  async function upload(file) {
    if (file.size > maxFile) throw new Error(`larger than ${maxFile >> 20} MB`);
    const response = await fetch(`${base}files?name=${encodeURIComponent(file.name)}`, {
      method: "POST",
      headers: { "Leat-Session": session, "Content-Type": file.type || "application/octet-stream" },
      body: file,
    }).catch(() => { throw new Error("not uploaded"); });
    if (!response.ok) throw new Error(response.status === 429 ? "too many files; try again later" : "not uploaded");
    return (await response.json()).file;
  }

  async function submit() {
    const text = input.value.trim();
    const files = attached.filter((a) => !a.problem);
    if (!text && files.length === 0) return;
    await Promise.all(files.map((a) => a.ready));
    if (files.some((a) => a.problem)) return; // the visitor sees which, and can remove it
    input.value = "";
    resize();
    attached.length = 0;
    chips.replaceChildren();
    const i = add({ kind: "user", text, key: newKey(), pending: true, refs: files.map((a) => a.ref), files: files.map(({ name, size, mime }) => ({ name, size, mime })) });
    log.scrollTop = log.scrollHeight;
    transmit(i);
  }

  function resize() {
    input.style.height = "auto";
    const height = input.scrollHeight + 2; // with the border
    input.style.height = `${Math.min(height, 140)}px`;
    input.style.overflowY = height > 140 ? "auto" : "hidden";
  }

  // ---- The page ----

  const host = create("div", { class: "leat-chat" });
  const root = create("div", { class: "root", "data-theme": options.theme, "data-connection": "connecting" });
  const status = create("div", { class: "hidden", role: "status" });
  const log = create("div", { class: "log", role: "log", "aria-live": "polite", "aria-label": "Messages", tabindex: "0" });
  const chips = create("div", { class: "chips" });
  const input = create("textarea", {
    rows: "1",
    "aria-label": "Message",
    placeholder: options.placeholder || `Message ${agentName}…`,
    input: resize,
    keydown: (e) => {
      if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
      e.preventDefault();
      void submit();
    },
    paste: (e) => {
      if (e.clipboardData.files.length === 0) return;
      e.preventDefault();
      attach(e.clipboardData.files);
    },
  });
  const picker = create("input", { type: "file", multiple: true, hidden: true, change: () => {
    attach(picker.files);
    picker.value = "";
    input.focus();
  } });
  const fileButton = create("button", { type: "button", class: "icon", "aria-label": "Attach files", click: () => picker.click() }, icon(icons.file));
  const sendButton = create("button", { type: "submit", class: "icon accent", "aria-label": "Send" }, icon(icons.send));
  const stopButton = create("button", { type: "button", class: "icon stop", "aria-label": "Stop", hidden: true, click: () => {
    send({ type: "stop" });
    input.focus();
  } }, icon(icons.stop));
  const form = create("form", { submit: (e) => {
    e.preventDefault();
    void submit();
  } }, chips, create("div", { class: "row" }, fileButton, picker, input, stopButton, sendButton));
  const closeButton = create("button", { type: "button", class: "icon", "aria-label": "Close", click: () => toggle(false) }, icon(icons.close));
  const greeting = options.greeting ? [create("div", { class: "greeting" }, options.greeting)] : [];
  const panel = create("section", {
    class: "panel",
    id: "panel",
    role: options.target ? "region" : "dialog",
    "aria-label": title,
    keydown: (e) => {
      if (e.key === "Escape" && !options.target) toggle(false);
    },
    dragover: (e) => e.preventDefault(),
    drop: (e) => {
      e.preventDefault();
      attach(e.dataTransfer.files);
    },
  }, create("header", {}, create("h2", {}, title), create("span", { class: "offline" }, "Reconnecting…"), ...(options.target ? [] : [closeButton])), ...greeting, log, status, form);
  const launcher = create("button", { type: "button", class: "launcher accent", "aria-label": title, "aria-controls": "panel", click: () => toggle(panel.hidden) }, icon(icons.chat));

  /** Opens or closes the panel. The first time it connects: a page view without an open panel costs the server nothing. */
  function toggle(open, focus = true) {
    panel.hidden = !open;
    launcher.setAttribute("aria-expanded", String(open));
    tab.set(openKey, open ? "1" : "");
    if (open && !socket && timer === undefined) connect();
    if (focus) (open ? input : launcher).focus();
    if (open) log.scrollTop = log.scrollHeight;
  }

  // An own property of the page overrides the default after the comma.
  const style = `
:host { all: initial; }
.root {
  --accent: var(--leat-accent, #2457d6); --on-accent: var(--leat-on-accent, #fff); --background: var(--leat-background, #fff);
  --text: var(--leat-text, #1c1e21); --muted: var(--leat-muted, #5c636d); --border: var(--leat-border, #d5d9de);
  --bubble: var(--leat-bubble, #f0f2f5); --error: var(--leat-error, #b3261e); --radius: var(--leat-radius, 14px);
  color: var(--text); color-scheme: light; font: var(--leat-font, 15px/1.45 system-ui, sans-serif);
}
.root[data-theme="dark"] {
  --accent: var(--leat-accent, #8ab0ff); --on-accent: var(--leat-on-accent, #0b1b3d); --background: var(--leat-background, #1b1d21);
  --text: var(--leat-text, #e6e8eb); --muted: var(--leat-muted, #a2a9b3); --border: var(--leat-border, #3a3f46);
  --bubble: var(--leat-bubble, #2a2e34); --error: var(--leat-error, #ff8a80); color-scheme: dark;
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
button { font: inherit; color: inherit; cursor: pointer; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
svg { width: 22px; height: 22px; fill: none; stroke: currentColor; stroke-width: 2; stroke-linecap: round; stroke-linejoin: round; }
.accent { background: var(--accent) !important; color: var(--on-accent); }
.launcher { position: fixed; right: 20px; bottom: 20px; z-index: var(--leat-layer, 2147483000); width: 56px; height: 56px; border: 0; border-radius: 50%; box-shadow: 0 4px 16px #0004; display: grid; place-items: center; }
.panel {
  position: fixed; right: 20px; bottom: 88px; z-index: var(--leat-layer, 2147483000); width: var(--leat-width, 400px); max-width: calc(100vw - 40px);
  height: var(--leat-height, 620px); max-height: calc(100dvh - 108px); display: flex; flex-direction: column; overflow: hidden;
  background: var(--background); border: 1px solid var(--border); border-radius: var(--radius); box-shadow: 0 8px 32px #0003;
}
.inline .panel { position: static; width: 100%; max-width: none; height: 100%; max-height: none; box-shadow: none; }
.inline, .inline.root { height: 100%; }
@media (max-width: 480px) { .root:not(.inline) .panel { inset: 0; width: auto; max-width: none; height: auto; max-height: none; border-radius: 0; } }
header { display: flex; align-items: center; gap: 8px; padding: 10px 10px 10px 16px; border-bottom: 1px solid var(--border); }
h2 { flex: 1; margin: 0; font-size: 1.07em; }
.offline { color: var(--muted); font-size: .87em; visibility: hidden; }
[data-connection="disconnected"] .offline { visibility: visible; }
.icon { flex: none; width: 36px; height: 36px; padding: 0; border: 0; border-radius: 50%; background: none; display: grid; place-items: center; }
.icon:hover { background: var(--bubble); }
.stop { color: var(--error); }
.greeting { padding: 12px 16px 0; color: var(--muted); }
.log { flex: 1; overflow-y: auto; overscroll-behavior: contain; padding: 12px 16px; display: flex; flex-direction: column; gap: 10px; }
.log:focus-visible { outline-offset: -3px; }
.message { max-width: 100%; overflow-wrap: anywhere; }
.user { align-self: flex-end; max-width: 85%; }
.user .bubble { background: var(--accent); color: var(--on-accent); padding: 8px 12px; border-radius: var(--radius); white-space: pre-wrap; }
.user.pending { opacity: .65; }
.note .bubble { background: var(--bubble); color: var(--muted); padding: 8px 12px; border-radius: var(--radius); font-size: .93em; }
.bubble > :first-child { margin-top: 0; } .bubble > :last-child { margin-bottom: 0; }
p, ul, ol, pre, blockquote, .table, h3, h4, h5, h6 { margin: 0 0 .6em; }
h3, h4, h5, h6 { font-size: 1.07em; }
ul, ol { padding-left: 1.5em; }
a { color: var(--accent); } .user a { color: inherit; }
code { font: .9em ui-monospace, monospace; background: var(--bubble); padding: .1em .3em; border-radius: 4px; }
pre { background: var(--bubble); padding: 10px 12px; border-radius: 8px; overflow-x: auto; } pre code { background: none; padding: 0; }
blockquote { border-left: 3px solid var(--border); padding-left: 12px; color: var(--muted); }
.table { overflow-x: auto; } table { border-collapse: collapse; } th, td { border: 1px solid var(--border); padding: 4px 8px; text-align: left; }
hr { border: 0; border-top: 1px solid var(--border); }
.tools { list-style: none; padding: 0; font-size: .87em; color: var(--muted); } .tools .sign { display: inline-block; width: 1.4em; } .tools .failed, .tools .denied { color: var(--error); }
.typing { display: flex; gap: 4px; padding: 6px 0; } .typing i { width: 7px; height: 7px; border-radius: 50%; background: var(--muted); animation: blink 1.2s infinite; }
.typing i:nth-child(2) { animation-delay: .2s; } .typing i:nth-child(3) { animation-delay: .4s; }
@keyframes blink { 0%, 60%, 100% { opacity: .25; } 30% { opacity: 1; } }
@media (prefers-reduced-motion: reduce) { .typing i { animation: none; opacity: .6; } }
.problem { color: var(--error); font-size: .93em; margin-top: 4px; }
.question { border: 1px solid var(--border); border-radius: var(--radius); padding: 10px 12px; margin-top: 6px; }
.question button, .problem button { margin: 6px 8px 0 0; padding: 6px 14px; border: 1px solid var(--accent); border-radius: 999px; background: none; color: var(--accent); }
.question button:disabled { opacity: .5; }
.files, .chips { display: flex; flex-wrap: wrap; gap: 6px; } .files { margin-top: 6px; }
.file { border: 1px solid var(--border); border-radius: 8px; padding: 4px 8px; background: none; font-size: .87em; text-align: left; } .file button { border: 0; background: none; padding: 0 0 0 6px; }
img { display: block; max-width: 100%; max-height: 300px; border-radius: 8px; margin-bottom: 4px; }
form { border-top: 1px solid var(--border); padding: 8px; } .chips:not(:empty) { padding: 0 0 8px; }
.row { display: flex; align-items: flex-end; gap: 4px; }
textarea { flex: 1; min-width: 0; resize: none; border: 1px solid var(--border); border-radius: 18px; padding: 7px 12px; font: inherit; color: inherit; background: var(--background); height: 38px; overflow-y: hidden; }
textarea::placeholder { color: var(--muted); opacity: 1; }
`;

  function start() {
    const shadow = host.attachShadow({ mode: "open" });
    // A constructed style sheet also works under a policy that forbids inline styles.
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(style);
    shadow.adoptedStyleSheets = [sheet];
    const target = options.target && document.querySelector(options.target);
    if (target) root.classList.add("inline");
    root.append(panel, ...(target ? [] : [launcher]));
    shadow.append(root);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const theme = () => {
      if (options.theme !== "light" && options.theme !== "dark") root.dataset.theme = dark.matches ? "dark" : "light";
    };
    theme();
    dark.addEventListener("change", theme);
    (target || document.body).append(host);
    if (target) host.style.cssText = "display: block; height: 100%";
    toggle(!!target || "open" in options || tab.get(openKey) === "1", false);
    addEventListener("online", reconnect);
    document.addEventListener("visibilitychange", () => document.hidden || reconnect());
    addEventListener("pageshow", (e) => e.persisted && reconnect());
    window.LeatChat = { open: () => toggle(true), close: () => toggle(false) };
  }

  if (document.body) start();
  else addEventListener("DOMContentLoaded", start);
})();
