// Package aisdk decodes the UI message stream of Vercel's AI SDK, version 1 (the header x-vercel-ai-ui-message-stream: v1), sent as
// server-sent events. The AI SDK's documentation describes it as "UI message stream protocol".
//
//	text-start, text-delta, text-end                  a text
//	reasoning-start, reasoning-delta, reasoning-end   a reasoning part
//	tool-input-*, tool-output-*                       a tool with its input, output and state
//	tool-approval-request                             a question
//	file, reasoning-file                              media
//	data-status with an id                            a status
//	data-* without an id                              data
//	finish, abort, error, [DONE]                      the end of the turn
//
// Steps, sources, metadata, transient data and data with another id are ignored, because they have no place in the text of an answer. Unlike
// the others, transient data and data with an id count as unknown, and so does every type that isn't listed here.
//
// Invariants
//
//   - A text is identified by its id until its end. The same id after that is a new text. A tool is identified by its toolCallId.
//   - finish, error and abort end the turn. [DONE] ends it if none of them came before.
//   - A tool-approval-request asks a question. The end of the stream after it doesn't end the turn, because the answer continues in
//     another stream.
//   - data-status with an id is a status, which the next one with that id replaces. Other data without an id becomes a part.
package aisdk
