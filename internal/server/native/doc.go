// Package native serves Leat's own protocol, specified in docs/protocol.md: conversations as SSE, NDJSON or over a WebSocket,
// commands, and the ingest of streams that agents push.
//
// # Order of calls
//
// The program creates a server, calls [Register] once with a started gateway, and then serves. Each handler gets the principal
// of its request and asks the gateway, which authorizes it.
//
// Invariants
//
//   - A reader's only state is its cursor. It pulls from the feed when its connection accepts more bytes, so a slow reader gets fewer
//     and larger frames and delays no other reader.
//   - A frame is written whole, or the connection ends. Only frames with a cursor move the cursor.
//   - Every cursor is accepted. If the feed can't resume at it, the next frame is a snapshot.
//   - On a socket, all frames of a subscription come between its "subscribed" frame and the next one for the same conversation.
//   - A body that is interrupted does not end its turn. Every offset that a producer gets is committed.
//   - Every goroutine ends before the handler that started it returns.
package native
