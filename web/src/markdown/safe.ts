// Decides which texts, links and images of a Markdown text are safe.

const namedEntities: Record<string, string> = {
  amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", copy: "©", reg: "®", trade: "™", hellip: "…", mdash: "—", ndash: "–",
  lsquo: "‘", rsquo: "’", ldquo: "“", rdquo: "”", laquo: "«", raquo: "»", times: "×", divide: "÷", middot: "·", bull: "•", deg: "°", plusmn: "±",
  euro: "€", pound: "£", yen: "¥", cent: "¢", sect: "§", para: "¶", rarr: "→", larr: "←", uarr: "↑", darr: "↓", harr: "↔", le: "≤", ge: "≥", ne: "≠",
  infin: "∞", asymp: "≈", alpha: "α", beta: "β", gamma: "γ", delta: "δ", pi: "π", sigma: "σ", omega: "ω", mu: "μ", lambda: "λ", Delta: "Δ", Sigma: "Σ", Omega: "Ω",
  shy: "\u00ad", ensp: "\u2002", emsp: "\u2003", thinsp: "\u2009", zwj: "\u200d", zwnj: "\u200c", check: "✓", cross: "✗",
};

/** Decodes character references. Invalid ones are left unchanged. */
export function unescape(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(/&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|([a-z]{2,8}));/gi, (match, hex: string | undefined, dec: string | undefined, name: string | undefined) => {
    if (name) return namedEntities[name] ?? match;
    const n = hex ? parseInt(hex, 16) : Number(dec);
    return n > 0 && n <= 0x10ffff && (n < 0xd800 || n > 0xdfff) ? String.fromCodePoint(n) : match;
  });
}

// Characters that change the direction of the following text. They can disguise a file name or an address.
const overrides = /[\u202a-\u202e\u2066-\u2069]/g;

/** Replaces characters that change the direction of text by visible marks. */
export function plain(text: string): string {
  return text.replace(overrides, (c) => `⟨U+${c.codePointAt(0)!.toString(16).toUpperCase()}⟩`);
}

const pageUrl = (): string => globalThis.location?.href ?? "http://leat.invalid/";

/**
 * Returns the address if a link may lead there, or undefined. Allowed are the web, mail, anchors in this page, and this gateway.
 */
export function safeLink(href: string): string | undefined {
  const at = unescape(href).trim();
  if (/^#/.test(at)) return at;
  let url: URL;
  try {
    url = new URL(at, pageUrl());
  } catch {
    return undefined;
  }
  return url.protocol === "https:" || url.protocol === "http:" || url.protocol === "mailto:" ? at : undefined;
}

/**
 * Reports whether a safe link leads to another host, as a browser parses it: "/\host" does, and so does "https:host" on an http
 * page.
 */
export function leadsAway(to: string): boolean {
  const url = new URL(to, pageUrl());
  return /^https?:$/.test(url.protocol) && url.origin !== new URL(pageUrl()).origin;
}

/** Returns the anchor of a link within the page. */
export function placeOf(href: string): string {
  const name = href.slice(1);
  try {
    return decodeURIComponent(name);
  } catch {
    return name; // an invalid escape sequence
  }
}

/** Reports whether an image may be loaded: from this gateway, or from a data URL. Other hosts would learn who reads the text. */
export function safeImage(src: string): boolean {
  if (/^data:image\/(?:png|jpeg|gif|webp|avif);base64,/i.test(src)) return true;
  try {
    const url = new URL(src, pageUrl());
    return url.origin === new URL(pageUrl()).origin && /\/api\/conversations\/[^/]+\/files\/[0-9a-f]{32}$/.test(url.pathname);
  } catch {
    return false;
  }
}
