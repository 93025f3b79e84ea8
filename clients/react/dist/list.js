import { jsx as _jsx, jsxs as _jsxs } from "react/jsx-runtime";
import { useEffect, useState } from "react";
import { useClient, useLive } from "./context.js";
// How often the list is loaded without live events, in milliseconds.
const interval = 15_000;
const listEvents = ["conversation-updated", "conversation-deleted", "conversation-read", "proactive-message", "agent_event", "resync"];
/** Loads the list of conversations, and keeps it up to date while the component is mounted. */
export function useConversations() {
    const client = useClient();
    const liveEvents = useLive();
    const [list, setList] = useState({ conversations: [], isLoading: true });
    useEffect(() => follow(client, liveEvents, setList), [client, liveEvents]);
    return list;
}
// follow loads the list now and after each event. Events during a request share the next one.
function follow(client, liveEvents, onList) {
    let isStopped = false;
    let isLoading = false;
    let isStale = false;
    const load = async () => {
        isStale = isLoading;
        if (isLoading)
            return;
        isLoading = true;
        try {
            const conversations = await client.list();
            if (!isStopped)
                onList(() => ({ conversations, isLoading: false }));
        }
        catch (err) {
            if (!isStopped)
                onList((l) => ({ ...l, isLoading: false, error: err instanceof Error ? err : new Error(String(err)) }));
        }
        isLoading = false;
        if (isStale && !isStopped)
            void load();
    };
    void load();
    const leave = liveEvents
        ? [...listEvents.map((type) => liveEvents.on(type, (e) => {
                if (e.type !== "agent_event" || e.stream === "lifecycle")
                    void load();
            })), liveEvents.onState((s) => s === "connected" && void load())]
        : [client.onState((s) => s === "connected" && void load())];
    const timer = liveEvents ? undefined : setInterval(() => void load(), interval);
    return () => {
        isStopped = true;
        clearInterval(timer);
        for (const end of leave)
            end();
    };
}
/** The list as buttons in a nav; an unread conversation has the attribute data-unread. */
export function ConversationList({ selected, onSelect, ...props }) {
    const { conversations, error } = useConversations();
    return (_jsxs("nav", { "aria-label": "Conversations", ...props, children: [error && _jsx("p", { role: "alert", children: error.message }), _jsx("ul", { children: conversations.map((c) => (_jsx("li", { "data-unread": c.unread && c.id !== selected ? "" : undefined, children: _jsx("button", { type: "button", "aria-current": c.id === selected ? "page" : undefined, onClick: () => onSelect(c.id), children: c.title || "Untitled" }) }, c.id))) })] }));
}
