import { jsx as _jsx, jsxs as _jsxs } from "react/jsx-runtime";
import { memo } from "react";
const print = (data) => (typeof data === "string" ? data : JSON.stringify(data, null, 2));
const Text = ({ part }) => _jsx("div", { style: { whiteSpace: "pre-wrap" }, children: part.text });
const Status = ({ part }) => _jsx("p", { role: "status", children: part.text });
const Reasoning = ({ part }) => (_jsxs("details", { children: [_jsx("summary", { children: part.ended ? "Reasoning" : "Reasoning…" }), _jsx("div", { style: { whiteSpace: "pre-wrap" }, children: part.text })] }));
const stateWords = { running: "running", done: "done", failed: "failed", denied: "denied" };
const Tool = ({ part }) => (_jsxs("details", { "data-state": part.state, children: [_jsxs("summary", { children: [part.title ?? part.name ?? "tool", ": ", stateWords[part.state ?? "running"]] }), part.input && _jsx("pre", { "data-field": "input", children: part.input }), part.output && _jsx("pre", { "data-field": "output", children: part.output }), part.stderr && _jsx("pre", { "data-field": "stderr", children: part.stderr }), part.error && _jsx("p", { role: "alert", children: part.error.message })] }));
// Only these addresses become links or pictures: others, such as javascript:, could run in the page.
const isLink = (url) => !!url && (url.startsWith("/") || /^(https?|blob):/i.test(url));
const MediaPart = ({ part }) => {
    const { url, mime, name, alt } = part.media ?? {};
    if (!isLink(url))
        return _jsx("p", { children: name ?? alt ?? "a file" });
    if (mime?.startsWith("image/"))
        return _jsx("img", { src: url, alt: alt ?? name ?? "" });
    return _jsx("a", { href: url, target: "_blank", rel: "noreferrer", children: name ?? url });
};
const Data = ({ part }) => _jsx("pre", { children: part.data === undefined ? "" : print(part.data) });
const defaults = { text: Text, status: Status, reasoning: Reasoning, tool: Tool, media: MediaPart, data: Data };
const isEmpty = (p) => (p.kind === "text" || p.kind === "reasoning" || p.kind === "status") && !p.text;
/** Renders the parts of a message in their order. */
export const Parts = memo(function Parts({ message, components }) {
    return message.parts.filter((p) => !isEmpty(p)).map((part) => {
        const Component = components?.[part.kind] ?? defaults[part.kind] ?? Data; // a newer gateway may have kinds that this version lacks
        return _jsx("div", { "data-part": part.kind, children: _jsx(Component, { part: part, message: message }) }, part.id);
    });
});
