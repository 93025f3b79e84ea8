// Package socket runs the life of a WebSocket connection: handshake, first frame, reads, writes, heartbeats, and the close. It
// knows no protocol. The caller decides what messages mean and what a client learns when the connection ends.
//
// The framing is its own: a connection without a goroutine needs a parser that takes bytes as they come and keeps only what is
// incomplete, and libraries read from an [io.Reader] that blocks.
//
// # Order of calls
//
// A handler calls [Accept] and then [Conn.Serve]:
//
//	conn, ok := socket.Accept(w, r, options)
//	if !ok {
//		return nil // Accept has answered the request
//	}
//	conn.Serve(handler)
//
// # Invariants
//
//   - Begin comes before all calls of Frame, and those come one at a time and in order. End comes after them and after every
//     goroutine of the connection.
//   - Any goroutine may write. A frame is written whole, or the connection ends.
//   - The first cause wins: an error of the handler, the argument of [Conn.End], a deadline of [Conn.EndAt], or the cause of the
//     request's context. Handler.Farewell gets it, unless the client closed the connection or broke the protocol.
//   - No frame starts after the connection's context has ended, except the one in the [Farewell] and the close frame.
//   - A client that breaks RFC 6455 gets a close frame with the code for it. Its messages are not handled any more.
//   - A client that accepts no bytes costs at most Options.Stall, and after that no goroutine.
package socket
