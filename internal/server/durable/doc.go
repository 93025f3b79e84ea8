// Package durable serves conversations and turns as Durable Streams: logs that clients read over plain HTTP from any
// offset. The program calls [Register] once, before the server starts. docs/outputs/durable-streams.md specifies what
// works.
//
// A view is a stream that shows what the gateway has: a conversation, or a turn. Its records are the events of the
// native protocol. It can't be written to.
//
// A stored stream is one that a user has created; internal/gateway/streams has them. Both kinds are read by the same
// code: a [stream] passes what follows an offset, and a [readRequest] answers with it at once, when something
// arrives, or as an event stream.
//
// # Invariants
//
//   - An offset is derived from the log, and never from what was sent: of a conversation it is the cursor, of a turn
//     the number of an operation. It begins with the position in a fixed width, so that offsets sort as text, and
//     names the log, so that one of another log is recognized.
//   - The records after an offset complete what a reader has that received those up to it, whatever was merged in
//     either reading.
//   - A conversation has no end. A turn's stream is closed by the turn's end, and by nothing else.
//   - In event streams, each event with data is followed by one with its offset, so that a client that is
//     disconnected between the two gets the data again and not twice.
//   - Paths of stored streams and ids of subscriptions are scoped by principal. The tokens of workers name the
//     principal themselves.
//   - A reader whose offset can't be resumed gets a snapshot in the place of everything before it.
package durable
