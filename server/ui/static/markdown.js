// A small renderer of Markdown that makes DOM nodes, never markup: whatever a text says stays text.

const el = (name, ...children) => {
  const e = document.createElement(name);
  e.append(...children);
  return e;
};

// blocks cuts a text into pieces that render by themselves. The text may end anywhere; an open fence runs to its end.
export function blocks(text) {
  const out = [];
  let lines = [];
  let fence = null;
  const flush = () => {
    if (lines.length) out.push(lines.join("\n"));
    lines = [];
  };
  for (const line of text.split("\n")) {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line);
    if (fence) {
      lines.push(line);
      if (mark && mark[1][0] === fence[0] && mark[1].length >= fence.length && line.trim() === mark[1]) {
        flush();
        fence = null;
      }
      continue;
    }
    if (mark) {
      flush();
      fence = mark[1];
      lines.push(line);
    } else if (line.trim() === "") {
      // A blank line inside a list belongs to it only if the list goes on, which is not known yet: it ends it.
      flush();
    } else if (/^#{1,6} /.test(line)) {
      flush();
      out.push(line);
    } else {
      const kind = (l) => (/^\s*([-*+]|\d{1,9}[.)]) /.test(l) ? "list" : /^\s*\|/.test(l) ? "table" : /^>/.test(l) ? "quote" : "text");
      if (lines.length && kind(lines[0]) !== kind(line) && !(kind(lines[0]) === "list" && /^\s/.test(line)) && kind(line) !== "text") flush();
      lines.push(line);
    }
  }
  flush();
  return out;
}

// render brings the children of an element up to a text. Blocks that did not change keep their nodes, so that a long
// answer that grows costs only its end.
export function render(parent, text) {
  const all = blocks(text);
  all.forEach((source, i) => {
    const old = parent.children[i];
    if (old && old.source === source) return;
    const node = block(source);
    node.source = source;
    if (old) old.replaceWith(node);
    else parent.append(node);
  });
  while (parent.children.length > all.length) parent.lastElementChild.remove();
}

function block(source) {
  const lines = source.split("\n");
  const fence = /^ {0,3}(`{3,}|~{3,})\s*(\S*)/.exec(lines[0]);
  if (fence) {
    const closed = lines.length > 1 && lines[lines.length - 1].trim().startsWith(fence[1]);
    const code = el("code", lines.slice(1, closed ? -1 : undefined).join("\n"));
    if (fence[2]) code.dataset.language = fence[2];
    return el("pre", code);
  }
  const heading = /^(#{1,6}) (.*)$/.exec(lines[0]);
  if (heading) return el(`h${Math.min(6, heading[1].length + 2)}`, ...inline(heading[2].replace(/\s#+\s*$/, "")));
  if (lines.length === 1 && /^ {0,3}([-*_])( *\1){2,} *$/.test(lines[0])) return el("hr");
  if (lines.every((l) => /^>/.test(l))) {
    const quote = el("blockquote");
    for (const b of blocks(lines.map((l) => l.replace(/^> ?/, "")).join("\n"))) quote.append(block(b));
    return quote;
  }
  if (lines.length > 1 && /^\s*\|?[\s:|-]+\|?\s*$/.test(lines[1]) && lines[1].includes("-") && lines[0].includes("|")) return tableOf(lines);
  if (/^\s*([-*+]|\d{1,9}[.)]) /.test(lines[0])) return list(lines);
  const p = el("p");
  lines.forEach((l, i) => {
    if (i) p.append(/ {2}$/.test(lines[i - 1]) ? el("br") : "\n");
    p.append(...inline(l.trim()));
  });
  return p;
}

function list(lines) {
  const item = /^(\s*)([-*+]|\d{1,9}[.)]) (.*)$/;
  const first = item.exec(lines[0]);
  const top = el(/\d/.test(first[2]) ? "ol" : "ul");
  if (/\d/.test(first[2]) && parseInt(first[2], 10) !== 1) top.start = parseInt(first[2], 10);
  let inner = [];
  let last = null;
  const nest = () => {
    if (inner.length && last) last.append(item.test(inner[0]) ? list(inner) : block(inner.map((l) => l.trim()).join("\n")));
    inner = [];
  };
  for (const l of lines) {
    const m = item.exec(l);
    if (m && m[1].length <= first[1].length + 1) {
      nest();
      last = el("li", ...inline(m[3]));
      top.append(last);
    } else {
      inner.push(l);
    }
  }
  nest();
  return top;
}

function tableOf(lines) {
  const cells = (l) => {
    const out = [];
    let cell = "";
    let code = false;
    const s = l.trim().replace(/^\|/, "").replace(/([^\\])\|$/, "$1");
    for (let i = 0; i < s.length; i++) {
      if (s[i] === "\\" && s[i + 1] === "|") {
        cell += "|";
        i++;
      } else if (s[i] === "|" && !code) {
        out.push(cell.trim());
        cell = "";
      } else {
        if (s[i] === "`") code = !code;
        cell += s[i];
      }
    }
    out.push(cell.trim());
    return out;
  };
  const align = cells(lines[1]).map((c) => (/^:-+:$/.test(c) ? "center" : /-:$/.test(c) ? "right" : ""));
  const row = (kind, l) => {
    const tr = el("tr");
    cells(l).slice(0, align.length).forEach((c, i) => {
      const td = el(kind, ...inline(c));
      if (align[i]) td.className = align[i];
      tr.append(td);
    });
    return tr;
  };
  const body = el("tbody");
  for (const l of lines.slice(2)) body.append(row("td", l));
  const scroll = el("div", el("table", el("thead", row("th", lines[0])), body));
  scroll.className = "table";
  return scroll;
}

const marks = [
  [/^(`+)(.+?)\1(?!`)/s, (m) => el("code", m[2].length > 2 && m[2].startsWith(" ") && m[2].endsWith(" ") ? m[2].slice(1, -1) : m[2])],
  [/^\*\*(?=\S)(.+?)\*\*/s, (m) => el("strong", ...inline(m[1]))],
  [/^__(?=\S)(.+?)__(?!\w)/s, (m) => el("strong", ...inline(m[1]))],
  [/^~~(?=\S)(.+?)~~/s, (m) => el("del", ...inline(m[1]))],
  [/^\*(?=[^\s*])(.+?)\*/s, (m) => el("em", ...inline(m[1]))],
  [/^_(?=[^\s_])(.+?)_(?!\w)/s, (m) => el("em", ...inline(m[1]))],
  [/^\[([^\]]+)\]\(([^)\s]+)\)/, (m) => link(m[2], inline(m[1])) || m[0]],
  [/^https?:\/\/[^\s<>()"'`]*[^\s<>()"'`.,;:!?]/, (m) => link(m[0], [m[0]]) || m[0]],
];

// inline renders what stands inside a line.
export function inline(text) {
  const out = [];
  let plain = "";
  for (let i = 0; i < text.length; ) {
    const c = text[i];
    if (c === "\\" && /[\\`*_~[\]()#|>!+.-]/.test(text[i + 1] || "")) {
      plain += text[i + 1];
      i += 2;
      continue;
    }
    let found = null;
    if ("`*_~[h".includes(c) && (c !== "_" || !/\w/.test(text[i - 1] || "")) && (c !== "h" || !/\w/.test(text[i - 1] || ""))) {
      const rest = text.slice(i);
      for (const [pattern, make] of marks) {
        const m = pattern.exec(rest);
        if (m) {
          found = [make(m), m[0].length];
          break;
        }
      }
    }
    if (found) {
      if (plain) out.push(plain);
      plain = "";
      out.push(found[0]);
      i += found[1];
    } else {
      plain += c;
      i++;
    }
  }
  if (plain) out.push(plain);
  return out;
}

// link makes a link of an address that leads to the web, and nothing of any other, such as javascript:.
export function link(address, children) {
  let url;
  try {
    url = new URL(address, location.href);
  } catch {
    return null;
  }
  if (!["http:", "https:", "mailto:"].includes(url.protocol)) return null;
  const a = el("a", ...children);
  a.href = url.href;
  a.rel = "noopener noreferrer";
  a.target = "_blank";
  return a;
}
