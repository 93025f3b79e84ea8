// Package aisdk decodes the UI message stream of Vercel's AI SDK, version 1 (the header x-vercel-ai-ui-message-stream: v1), sent as
// server-sent events. The AI SDK's documentation describes it as "UI message stream protocol".
//
// Invariants
//
//   - A text is identified by its id until its end. The same id after that is a new text. A tool is identified by its toolCallId.
//   - finish, error and abort end the turn. [DONE] ends it if none of them came before.
//   - A tool-approval-request asks a question. The end of the stream after it doesn't end the turn, because the answer continues in
//     another stream.
//   - data-status with an id is a status, which the next one with that id replaces. Other data without an id becomes a part; data with
//     an id, transient data, sources and metadata are recognized and ignored.
package aisdk
