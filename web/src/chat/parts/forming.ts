// Parses incomplete JSON into the value that is already certain. A tool's arguments are shown field by field while they are
// written. Shown fields stay: a prefix that adds no value, or isn't JSON, never removes a field.

export type Value = null | boolean | number | string | Value[] | { [key: string]: Value };

/**
 * whole: the text is complete JSON. growing: it is the beginning of JSON. broken: it is not JSON. value is the part that is
 * certain; undefined if there is none yet.
 */
export interface Formed { value: Value | undefined; state: "whole" | "growing" | "broken" }

/** The maximum nesting depth. */
const deepest = 64;

class SyntaxFault extends Error {}

const noValue = Symbol("nothing");
type Result = Value | typeof noValue;

class Reader {
  at = 0;
  open = false; // the text ended inside the current value

  constructor(private readonly text: string) {}

  blank(): void {
    while (" \t\n\r".includes(this.text[this.at] ?? "x")) this.at++;
  }

  isAtEnd(): boolean {
    return this.at >= this.text.length;
  }

  value(depth: number): Result {
    this.blank();
    if (this.isAtEnd()) {
      this.open = true;
      return noValue;
    }
    if (depth > deepest) throw new SyntaxFault();
    const c = this.text[this.at]!;
    if (c === "{") return this.object(depth);
    if (c === "[") return this.array(depth);
    if (c === '"') return this.string();
    if (c === "-" || (c >= "0" && c <= "9")) return this.number();
    for (const [word, v] of [["true", true], ["false", false], ["null", null]] as const) {
      const prefix = this.text.slice(this.at, this.at + word.length);
      if (prefix === word) {
        this.at += word.length;
        return v;
      }
      if (word.startsWith(prefix) && this.at + prefix.length === this.text.length) {
        this.at = this.text.length;
        this.open = true;
        return noValue;
      }
    }
    throw new SyntaxFault();
  }

  private object(depth: number): Value {
    // Without a prototype, so that no key has a special meaning.
    const fields = Object.create(null) as { [key: string]: Value };
    this.at++;
    for (let isFirst = true; ; isFirst = false) {
      this.blank();
      if (this.isAtEnd()) break;
      if (this.text[this.at] === "}" && isFirst) return this.at++, fields;
      if (this.text[this.at] !== '"') throw new SyntaxFault();
      const key = this.string();
      if (this.open) return fields; // an incomplete key is ignored
      this.blank();
      if (this.isAtEnd()) break;
      if (this.text[this.at++] !== ":") throw new SyntaxFault();
      const v = this.value(depth + 1);
      if (v !== noValue) fields[key] = v;
      if (this.open) return fields;
      this.blank();
      if (this.isAtEnd()) break;
      const c = this.text[this.at++];
      if (c === "}") return fields;
      if (c !== ",") throw new SyntaxFault();
    }
    this.open = true;
    return fields;
  }

  private array(depth: number): Value {
    const items: Value[] = [];
    this.at++;
    for (let isFirst = true; ; isFirst = false) {
      this.blank();
      if (this.isAtEnd()) break;
      if (this.text[this.at] === "]" && isFirst) return this.at++, items;
      const v = this.value(depth + 1);
      if (v !== noValue) items.push(v);
      if (this.open) return items;
      this.blank();
      if (this.isAtEnd()) break;
      const c = this.text[this.at++];
      if (c === "]") return items;
      if (c !== ",") throw new SyntaxFault();
    }
    this.open = true;
    return items;
  }

  private string(): string {
    let decoded = "";
    for (this.at++; ; ) {
      const plain = /[^"\\\u0000-\u001f]*/y;
      plain.lastIndex = this.at;
      const run = plain.exec(this.text)![0];
      decoded += run;
      this.at += run.length;
      if (this.isAtEnd()) break;
      const c = this.text[this.at]!;
      if (c === '"') return this.at++, decoded;
      if (c !== "\\") throw new SyntaxFault(); // an unescaped control character
      const kind = this.text[this.at + 1];
      if (kind === undefined) break;
      if (kind === "u") {
        const digits = this.text.slice(this.at + 2, this.at + 6);
        if (!/^[0-9a-fA-F]*$/.test(digits)) throw new SyntaxFault();
        if (digits.length < 4) break;
        decoded += String.fromCharCode(parseInt(digits, 16));
        this.at += 6;
        continue;
      }
      const plainly = ({ '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" } as Record<string, string>)[kind];
      if (plainly === undefined) throw new SyntaxFault();
      decoded += plainly;
      this.at += 2;
    }
    this.at = this.text.length;
    this.open = true;
    return /[\ud800-\udbff]$/.test(decoded) ? decoded.slice(0, -1) : decoded; // wait for the other half of the surrogate pair
  }

  // number parses a number. At the end of the text more digits may follow, but only a lone minus has no value yet.
  private number(): Result {
    const form = /-?(?:0|[1-9]\d*)?(?:\.\d*)?(?:[eE][+-]?\d*)?/y;
    form.lastIndex = this.at;
    const raw = form.exec(this.text)![0];
    this.at += raw.length;
    const numberPattern = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
    if (!this.isAtEnd()) {
      if (!numberPattern.test(raw)) throw new SyntaxFault();
      return Number(raw);
    }
    this.open = true;
    for (let n = raw.length; n > 0; n--) if (numberPattern.test(raw.slice(0, n))) return Number(raw.slice(0, n));
    return noValue;
  }
}

/** Parses the beginning of a JSON text. */
export function formed(text: string): Formed {
  if (text.trim() === "") return { value: undefined, state: "growing" };
  const r = new Reader(text);
  try {
    const v = r.value(0);
    r.blank();
    if (!r.isAtEnd()) return { value: undefined, state: "broken" };
    const value = v === noValue ? undefined : v;
    // A top-level number counts as complete, although more digits may follow.
    return { value, state: r.open && typeof value !== "number" ? "growing" : "whole" };
  } catch (err) {
    if (err instanceof SyntaxFault) return { value: undefined, state: "broken" };
    throw err;
  }
}

/** Parses a growing text repeatedly, and keeps the last valid value. */
export class Forming {
  private text = "";
  private last: Formed = { value: undefined, state: "growing" };

  parse(text: string): Formed {
    if (text === this.text) return this.last;
    const goesOn = this.text !== "" && text.startsWith(this.text);
    const result = formed(text);
    this.last = result.value === undefined && goesOn && this.last.value !== undefined ? { value: this.last.value, state: result.state } : result;
    this.text = text;
    return this.last;
  }
}
