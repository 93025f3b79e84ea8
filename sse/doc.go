// Package sse reads and writes server-sent events (text/event-stream) without owning a connection.
//
// Invariants
//
//   - How the bytes are cut into calls of [Reader.Feed] never changes which events come out.
//   - [Reader.Offset] is a boundary: a new Reader with Resumed set that is fed the stream from there on gives exactly the
//     events that the first one would still have given. An event therefore carries only what it says itself; an id is not
//     inherited from the event before.
//   - What is not ended by a blank line is no event. [Reader.Close] says so, so that a stream cut in the middle is never
//     taken for a whole one.
//   - What [AppendEvent] writes, a Reader reads back as one event with the same id, name and data; in the data every CR
//     and CRLF becomes LF, as the format demands.
//
// The package imports nothing of the project and is pure: no clock, no goroutine, no input or output.
package sse
