// Package aisdk decodes the UI message stream of the AI SDK, version 1, as server-sent events.
//
// Invariants
//
//   - A text is known by its id until its end; the same id afterwards is a new text. A tool is known by its toolCallId.
//   - finish, error and abort are the end, and so is [DONE] where none of them came before.
//   - A request for an approval is asked, and the stream that ends behind it is not at the turn's end.
//   - data-status with an id is a status, which the next one of that id replaces. Other data without an id are parts of their
//     own; data with an id, transient data, sources and metadata are known and left out.
package aisdk
