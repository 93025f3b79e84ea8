// Package a2a decodes the streams of the Agent2Agent protocol, 1.0 and 0.3: server-sent events with responses of JSON-RPC, or
// with the objects by themselves.
//
// Invariants
//
//   - An artifact is known by its id: append extends it, anything else is the artifact as it is now.
//   - What a task says of its state while it works is a status; what it says at its end is text, unless an artifact says the
//     same. A stream of one message, without a task, is that message.
//   - The end is a state of the task that is final. A task that wants an input asks for it and is not at its end, though its
//     stream is.
package a2a
