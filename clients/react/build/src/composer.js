import { jsx as _jsx, jsxs as _jsxs } from "react/jsx-runtime";
// The input for a message, with Stop while a turn runs.
import { useState } from "react";
import { useThread } from "./context.js";
/** A form that sends its text: Enter sends, Shift+Enter begins a line. A message can be sent without a connection; it waits for one. */
export function Composer({ placeholder = "Write a message", ...props }) {
    const { conversation, busy, phase } = useThread();
    const [text, setText] = useState("");
    const isEmpty = text.trim() === "";
    const send = () => {
        if (isEmpty || phase === "gone")
            return;
        void conversation.send(text); // a refusal is shown among the messages
        setText("");
    };
    return (_jsxs("form", { ...props, onSubmit: (e) => {
            e.preventDefault();
            send();
        }, children: [_jsx("textarea", { "aria-label": "Message", placeholder: placeholder, rows: 1, value: text, onChange: (e) => setText(e.target.value), onKeyDown: (e) => {
                    if (e.key !== "Enter" || e.shiftKey || e.nativeEvent.isComposing)
                        return;
                    e.preventDefault();
                    send();
                } }), busy && _jsx("button", { type: "button", onClick: () => void conversation.stop().catch(() => { }), children: "Stop" }), _jsx("button", { type: "submit", disabled: isEmpty || phase === "gone", children: "Send" })] }));
}
