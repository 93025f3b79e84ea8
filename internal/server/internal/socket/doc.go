// Package socket runs the life of a WebSocket connection: handshake, first frame, reads, writes, heartbeats, and the close. It
// knows no protocol. The caller decides what frames mean and what a client learns when the connection ends.
//
// # Order of calls
//
// A handler calls [Accept] and then [Conn.Serve], which runs the caller's read loop and returns after the connection and all
// goroutines of [Conn.Go] have ended:
//
//	conn, ok := socket.Accept(w, r, options)
//	if !ok {
//		return nil // Accept has answered the request
//	}
//	cause := conn.Serve(func() error {
//		frame, err := conn.ReadFirst(limit, errUnauthorized)
//		...
//		conn.Heartbeat(15*time.Second, ping)
//		for {
//			frame, err := conn.Read()
//			...
//		}
//	})
//
// Invariants
//
//   - One goroutine, the one that runs the read loop, reads. Any goroutine may write; a frame is written whole, or the
//     connection ends.
//   - The first cause wins: an error of the read loop, the argument of [Conn.End], a deadline of [Conn.EndAt], or the cause of the
//     request's context. Options.Farewell gets it once.
//   - No frame starts after the connection's context has ended, except the one in the [Farewell].
//   - A client that accepts no bytes costs at most Options.Stall, and after that no goroutine.
package socket
