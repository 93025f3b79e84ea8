// Package outgoing writes to connections that have no goroutine. It knows no protocol: a frame is any bytes that must arrive together
// and in one piece.
//
// [Conn.TryWrite] never blocks, and is for goroutines that write to many connections. [Conn.Write] blocks, and is for goroutines that
// have one frame for one connection.
//
// # Invariants
//
//   - Frames never mix. When the system has taken a part of a frame, the rest is sent before any other frame.
//   - A frame is written with one system call if the system has room for it.
//   - A Write that waits goes before every later TryWrite, so a busy conversation can't delay the answer to a command.
//   - No frame follows the one of [Conn.WriteLast].
//   - Owner.OnReady follows each TryWrite that returned Busy or Pending, unless the connection ends before. Several of them get one
//     call.
//   - A connection that is not blocked has no timer and no registration for Writable.
//   - A client that accepts no bytes for Config.Stall loses its connection. The limit counts from the last byte that was accepted.
package outgoing
