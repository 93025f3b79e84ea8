// Package a2a decodes the streams of the Agent2Agent protocol (a2a-protocol.org), versions 1.0 and 0.3: server-sent events with JSON-RPC
// responses, or with their results alone.
//
// Invariants
//
//   - An artifact is identified by its id. An update with append extends it; any other update replaces it.
//   - The status message of a working task is a status part. The message of a finished task is text, unless an artifact has the same text. A
//     stream of one message without a task is that message.
//   - A final state of the task ends the turn. A task that requires input asks a question and leaves the turn open, although its
//     stream ends.
package a2a
