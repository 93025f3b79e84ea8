// The possible answers to a request, in the order of their buttons: refusals first.

import type { Request } from "@leat/client";

import { line } from "./parts/marks";

const refuses = /^(?:deny|denied|reject|no\b|cancel|decline|refuse|abort|disallow|block|never)/i;
const allows = /^(?:approve|allow|yes\b|accept|ok\b|permit|grant|proceed|continue)/i;
const lasting = /always|session|remember|permanent|forever|all\b/i;

export interface Choice { decision: string; label: string; tone: "refuse" | "allow" | "always" | "other" }

const tone = (o: string): Choice["tone"] => (refuses.test(o) ? "refuse" : lasting.test(o) ? "always" : allows.test(o) ? "allow" : "other");

export function choices(r: Request): Choice[] {
  const options = [...new Set(r.options ?? [])];
  if (r.kind === "input") return options.map((o) => ({ decision: o, label: line(o, 120), tone: "other" }));
  const ordered = options.map((o): Choice => ({ decision: o, label: label(o, r.tool), tone: tone(o) }));
  // Every approval can be refused or granted once, even if the agent offers only other answers.
  if (!ordered.some((c) => c.tone === "refuse")) ordered.push({ decision: "deny", label: "Deny", tone: "refuse" });
  if (!ordered.some((c) => c.tone === "allow")) ordered.push({ decision: "approve", label: "Allow once", tone: "allow" });
  const order = ["refuse", "allow", "always", "other"];
  return ordered.sort((a, b) => order.indexOf(a.tone) - order.indexOf(b.tone));
}

function label(option: string, tool: string | undefined): string {
  const o = line(option, 120);
  if (o === "deny") return "Deny";
  if (/^(?:approve|allow[-_]?once)$/.test(o)) return "Allow once";
  if (/^(?:allow|approve)[-_]always$|^always$/.test(o)) return tool ? `Always allow ${line(tool, 40)}` : "Always allow";
  return /\s/.test(o) ? o : words(o);
}

function words(o: string): string {
  const text = o.replace(/[-_]+/g, " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Describes a given answer in the past tense. */
export function did(r: Pick<Request, "kind" | "tool">, decision: string): string {
  const effect = r.kind === "input" ? "other" : tone(decision);
  const target = r.tool ? ` ${line(r.tool, 60)}` : "";
  if (decision === "deny" || effect === "refuse") return `denied${target}`;
  if (effect === "always") return `allowed${target} from now on`;
  if (decision === "approve" || effect === "allow") return `allowed${target}`;
  return decision ? `answered “${line(decision, 120)}”` : "answered";
}
