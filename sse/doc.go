// Package sse parses and formats server-sent events (text/event-stream), as the WHATWG HTML Living Standard defines them in section 9.2,
// "Server-sent events". It works on bytes and owns no connection, so it suits clients, servers and recorded files.
//
// To parse, call [Reader.Feed] with each piece of the stream, then [Reader.Close]. To continue a broken stream, store
// [Reader.Offset] and feed a new Reader, with MidStream set, from that offset on. To format, call [AppendEvent] for each event.
//
// Invariants
//
//   - How the bytes are divided into calls of Feed never changes the events.
//   - Offset is always a boundary between events: a resumed Reader returns exactly the events that the first one would still have
//     returned. For that reason an event doesn't inherit the id of the event before, unlike a browser's lastEventId.
//   - Bytes that no blank line ends are not an event, as the standard requires. Close reports them, so that a stream cut in the middle is
//     never taken for a complete one.
//   - A Reader parses the output of AppendEvent into one event with the same id, name and data, except that each CR and CRLF in
//     the data becomes LF, because the format can't represent them.
//
// A Reader is not safe for concurrent use. The package imports nothing of the project and has no clock, goroutine, input or output.
package sse
