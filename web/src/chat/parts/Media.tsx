// A picture, sound, video or file. Only files of this gateway and data URLs in the log are loaded; others are links.

import type { Part } from "@leat/client";
import { useState } from "react";

import { base } from "../../gateway";
import { safeLink } from "../../markdown/lex";
import { size } from "../../time";
import { Enlargeable } from "../../ui/Enlargeable";
import { Icon } from "../../ui/Icon";
import { line } from "./marks";

export function Media({ part: p, live }: { part: Part; live: boolean }) {
  const m = p.media ?? {};
  const [failedUrl, setBroken] = useState("");
  const name = line(m.name || m.alt || p.title || "File", 200);
  const src = local(m.url);
  const kind = (m.mime ?? "").split("/")[0];
  const fail = () => setBroken(m.url ?? "");
  if (src && !p.error && failedUrl !== m.url) {
    if (kind === "image" && !m.mime!.startsWith("image/svg")) return <Picture part={p} src={src} alt={m.alt ? line(m.alt) : name} fail={fail} />;
    if (kind === "audio" || kind === "video") {
      const Player = kind;
      return (
        <figure className={`media ${kind}`}>
          <Player controls preload={kind === "video" ? "metadata" : "none"} src={src} aria-label={name} onError={fail} />
          <figcaption><bdi>{name}</bdi>{facts(p)}<Save href={src} name={name} /></figcaption>
        </figure>
      );
    }
  }
  return <File part={p} live={live} name={name} here={src} why={p.error ? line(p.error.message, 1000) : failedUrl ? "Couldn’t load this file." : ""} />;
}

function Picture({ part: p, src, alt, fail }: { part: Part; src: string; alt: string; fail: () => void }) {
  const [measured, setMeasured] = useState(() => measuredSizes.get(src));
  const size = dimensions(p);
  const measure = (e: { currentTarget: HTMLImageElement }) => {
    if (dimensions(p)) return;
    const { naturalWidth: width, naturalHeight: height } = e.currentTarget;
    if (!width || !height) return;
    const scale = Math.min(1, unknownHeight / height); // the height that was reserved
    const shownSize = { width: Math.round(width * scale), height: Math.round(height * scale) };
    measuredSizes.delete(src);
    measuredSizes.set(src, shownSize);
    if (measuredSizes.size > maxMeasured) measuredSizes.delete(measuredSizes.keys().next().value!);
    setMeasured(shownSize);
  };
  // Space is reserved before the picture loads: its own size if known, or else a fixed height.
  return (
    <Enlargeable className="media image" src={src} alt={alt} style={size ?? measured ? sized((size ?? measured)!) : undefined}>
      <img src={src} alt={alt} title={alt} loading="lazy" onLoad={measure} onError={fail} {...(size && { width: size.width, height: size.height, className: "sized" })} />
    </Enlargeable>
  );
}

/** The height that is reserved for a picture of unknown size, and the maximum of others. CSS pixels; parts.css has the first. */
const unknownHeight = 240;
const maxHeight = 480;

/** The sizes of loaded pictures, so that one that is rendered again takes its room at once. */
const measuredSizes = new Map<string, { width: number; height: number }>();
const maxMeasured = 200;

// The width follows from the maximum height, so that a high picture keeps its aspect ratio.
function sized({ width, height }: { width: number; height: number }) {
  return { width: `${Math.round(width * Math.min(1, maxHeight / height))}px`, aspectRatio: `${width} / ${height}` };
}

function File({ part: p, live, name, here, why }: { part: Part; live: boolean; name: string; here: string | undefined; why: string }) {
  const url = p.media?.url;
  const to = here ?? (url ? safeLink(url) : undefined);
  const away = !here && to ? host(to) : "";
  const about = [line(p.media?.mime ?? "", 60), p.media?.size ? size(p.media.size) : "", away && `on ${away}`].filter(Boolean).join(" · ");
  const inside = (
    <>
      <Icon name={why ? "warning" : "file"} />
      <span className="what">
        <bdi className="name">{name}</bdi>
        {about && <span className="about">{about}</span>}
        {why && <span className="bad">{why}</span>}
        {!to && !why && <span className="about">{url ? `Not opened: ${line(url, 120)}` : live ? "Loading" : "No address"}</span>}
      </span>
    </>
  );
  if (!to || (here && why)) return <div className="media file" data-bad={why ? true : undefined} aria-busy={live && !url && !why ? true : undefined}>{inside}</div>;
  if (here) return <a className="media file" href={saved(here, name)} download={name}>{inside}<Icon name="save" /></a>;
  return <a className="media file" href={to} target="_blank" rel="noopener noreferrer" data-bad={why ? true : undefined}>{inside}</a>;
}

// Files with the same content share a URL, so the name is passed to the gateway.
const saved = (src: string, name: string): string => (src.startsWith("data:") ? src : `${src}?download=${encodeURIComponent(name)}`);

function Save({ href, name }: { href: string; name: string }) {
  return <a className="quiet button" href={saved(href, name)} download={name} aria-label={`Download ${name}`} title="Download"><Icon name="save" /></a>;
}

const facts = (p: Part) => <span className="about">{[p.media?.mime ? line(p.media.mime, 60) : "", p.media?.size ? size(p.media.size) : ""].filter(Boolean).join(" · ")}</span>;

function host(url: string): string {
  try {
    return line(new URL(url).host, 80);
  } catch {
    return "";
  }
}

function dimensions(p: Part): { width: number; height: number } | undefined {
  const of = [p.media, p.data] as (Record<string, unknown> | undefined)[];
  for (const o of of) {
    const { width, height } = typeof o === "object" && o !== null ? o : {};
    if (typeof width === "number" && typeof height === "number" && width > 0 && height > 0 && width < 1e5 && height < 1e5) return { width, height };
  }
  return undefined;
}

/** Returns the URL of a file that this gateway stores, relative to the page's own address; undefined for other URLs. */
export function local(url: string | undefined): string | undefined {
  if (!url) return undefined;
  if (/^data:(?:image\/(?:png|jpeg|gif|webp|avif)|audio\/[\w.+-]+|video\/[\w.+-]+)[;,]/i.test(url)) return url;
  const path = /^(?:\/[\w.~-]+)*\/?(api\/conversations\/[^/?#]+\/files\/[0-9a-f]{32})$/.exec(url);
  return path && !url.startsWith("//") ? `${base}/${path[1]}` : undefined;
}
