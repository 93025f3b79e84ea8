import { jsx as _jsx, Fragment as _Fragment, jsxs as _jsxs } from "react/jsx-runtime";
import { useId, useState } from "react";
import { useThread } from "./context.js";
/** Renders the open questions of the thread with their answers. It renders nothing if there are none. */
export function Requests(props) {
    return useThread().turns.flatMap((turn) => (turn.state === "ended" ? [] : (turn.requests ?? [])).map((r) => (_jsx(RequestForm, { turn: turn.id, request: r, ...props }, `${turn.id} ${r.id}`))));
}
function RequestForm({ turn, request, ...props }) {
    const { conversation } = useThread();
    const [text, setText] = useState("");
    const [error, setError] = useState("");
    const [isSent, setIsSent] = useState(false);
    const promptId = useId();
    const answer = (a) => {
        setIsSent(true);
        setError("");
        conversation.answer(turn, request.id, a).catch((err) => {
            setIsSent(false);
            setError(err instanceof Error ? err.message : String(err));
        });
    };
    const options = request.options ?? (request.kind === "approval" ? ["approve", "deny"] : []);
    return (_jsxs("form", { "aria-labelledby": promptId, "data-request": request.kind, ...props, onSubmit: (e) => {
            e.preventDefault();
            answer({ text });
        }, children: [_jsx("p", { id: promptId, children: request.prompt ?? (request.tool ? `May ${request.tool} run?` : "The agent has a question.") }), options.map((o) => _jsx("button", { type: "button", disabled: isSent, onClick: () => answer({ decision: o }), children: o }, o)), request.kind === "input" && options.length === 0 && (_jsxs(_Fragment, { children: [_jsx("input", { "aria-labelledby": promptId, value: text, onChange: (e) => setText(e.target.value) }), _jsx("button", { type: "submit", disabled: isSent || text.trim() === "", children: "Answer" })] })), error && _jsx("p", { role: "alert", children: error })] }));
}
