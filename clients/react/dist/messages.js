import { jsx as _jsx, jsxs as _jsxs } from "react/jsx-runtime";
import { useLayoutEffect, useRef } from "react";
import { useThread } from "./context.js";
import { Parts } from "./parts.js";
import { Requests } from "./requests.js";
// So near to its end, in pixels, a log counts as read to its end.
const endMargin = 32;
/**
 * Renders the messages of the thread, oldest first, with a button for older ones, the questions of waiting turns, errors of turns, and
 * messages that are on their way. If the section scrolls, it stays at its end while the reader is there.
 */
export function Messages({ parts, children, ...props }) {
    const { messages, turns, pending, earlier, conversation, error } = useThread();
    const section = useRef(null);
    const isAtEnd = useRef(true);
    useLayoutEffect(() => {
        if (isAtEnd.current)
            section.current.scrollTop = section.current.scrollHeight;
    });
    const turnOf = (m) => turns.find((t) => t.id === m.turn);
    return (_jsxs("section", { role: "log", "aria-label": "Messages", ...props, ref: section, onScroll: ({ currentTarget: e }) => {
            isAtEnd.current = e.scrollHeight - e.scrollTop - e.clientHeight < endMargin;
        }, children: [earlier && _jsx("button", { type: "button", onClick: () => void conversation.loadEarlier(), children: "Earlier messages" }), messages.map((m) => (children ? children(m, turnOf(m)) : _jsx("article", { "data-role": m.role, children: _jsx(Parts, { message: m, components: parts }) }, m.id))), pending.map((p) => _jsx(Unsent, { message: p }, p.key)), _jsx(Requests, {}), _jsx(TurnError, { turn: turns.at(-1) }), error && _jsx("p", { role: "alert", children: error.message })] }));
}
// Unsent shows a message that has no acknowledgement yet, or that was refused.
function Unsent({ message: { key, message, error } }) {
    const { conversation } = useThread();
    return (_jsxs("article", { "data-role": "user", "data-state": error ? "refused" : "unsent", children: [_jsx("div", { style: { whiteSpace: "pre-wrap" }, children: message.text ?? message.parts?.map((p) => p.text ?? p.media?.name ?? "").join("\n") }), error && (_jsxs("p", { role: "alert", children: [error.message, _jsx("button", { type: "button", onClick: () => void conversation.retry(key).catch(() => { }), children: "Try again" }), _jsx("button", { type: "button", onClick: () => conversation.discard(key), children: "Discard" })] }))] }));
}
function TurnError({ turn }) {
    if (turn?.state !== "ended" || turn.outcome === "completed")
        return null;
    return _jsx("p", { role: "alert", "data-outcome": turn.outcome, children: turn.error?.message ?? outcomeWords[turn.outcome ?? "failed"] });
}
const outcomeWords = { completed: "", failed: "The answer failed.", cancelled: "Stopped.", interrupted: "The gateway was restarted during the answer." };
