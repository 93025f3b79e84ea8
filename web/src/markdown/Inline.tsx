// Renders inline content.

import type { Token, Tokens } from "marked";
import type { ReactNode } from "react";

import { Enlargeable } from "../ui/Enlargeable";
import { Formula } from "./Formula";
import { onItsWay } from "./heal";
import { deepest, leadsAway, plain, safeImage, safeLink, unescape } from "./lex";

export function Inline({ tokens }: { tokens: Token[] | undefined }): ReactNode {
  return inline(tokens, 0, false);
}

function inline(tokens: Token[] | undefined, depth: number, isLinked: boolean): ReactNode {
  if (!tokens) return null;
  if (depth > deepest) return tokens.map((t) => t.raw).join("");
  const nodes: ReactNode[] = [];
  const words = (s: string) => {
    const n = nodes.length - 1;
    if (typeof nodes[n] === "string") nodes[n] += s;
    else nodes.push(s);
  };
  tokens.forEach((token, i) => {
    const t = token as Tokens.Generic;
    switch (t.type) {
      case "strong": return nodes.push(<strong key={i}>{inline(t.tokens, depth + 1, isLinked)}</strong>);
      case "em": return nodes.push(<em key={i}>{inline(t.tokens, depth + 1, isLinked)}</em>);
      case "del": return nodes.push(<del key={i}>{inline(t.tokens, depth + 1, isLinked)}</del>);
      case "codespan": return nodes.push(<code key={i}>{plain(t.text as string)}</code>);
      case "math": return nodes.push(<Formula key={i} text={t.text as string} />);
      case "br": return nodes.push(<br key={i} />);
      case "link": return nodes.push(<Link key={i} href={t.href as string} title={t.title as string | null}>{inline(t.tokens, depth + 1, true)}</Link>);
      case "image": return nodes.push(<Image key={i} src={t.href as string} alt={unescape(t.text as string)} isLinked={isLinked} />);
      case "noteref": return nodes.push(<sup key={i}><a href={`#note-${t.label}`} data-ref={t.label as string} role="doc-noteref" aria-label={`Note ${t.label}`}>{t.label as string}</a></sup>);
      case "checkbox": return undefined; // the list item renders it
      case "html": return words(plain(t.raw));
      case "escape": return words(t.text as string);
    }
    if (t.tokens) nodes.push(...[inline(t.tokens, depth + 1, isLinked)].flat());
    else words(unescape((t.text as string | undefined) ?? t.raw));
  });
  return nodes;
}

function Link({ href, title, children }: { href: string; title: string | null; children: ReactNode }) {
  const to = href === onItsWay ? undefined : safeLink(href);
  // A link with an incomplete or unsafe address is shown as text.
  if (!to) return <span className="no-link" title={href === onItsWay ? undefined : plain(href)}>{children}</span>;
  return <a href={to} title={title ? plain(unescape(title)) : plain(to)} {...(leadsAway(to) && { target: "_blank", rel: "noopener noreferrer" })}>{children}</a>;
}

function Image({ src, alt, isLinked }: { src: string; alt: string; isLinked: boolean }) {
  if (safeImage(src) && isLinked) return <img src={src} alt={alt} loading="lazy" />;
  if (safeImage(src)) return <Enlargeable className="picture" src={src} alt={alt}><img src={src} alt={alt} loading="lazy" /></Enlargeable>;
  const to = src === onItsWay ? undefined : safeLink(src);
  let host = "";
  try {
    host = to ? new URL(to).host : "";
  } catch {
    // An address of this gateway that is not a file.
  }
  return host && to ? <a href={to} title={plain(to)} target="_blank" rel="noopener noreferrer">{alt || "picture"} ({host})</a> : <span className="no-link">{alt || (src === onItsWay ? "" : plain(src))}</span>;
}
