// Package native is Leat's own protocol, which docs/protocol.md specifies: reading a conversation as SSE, NDJSON or over a
// WebSocket, commands, and the ingest of streams that agents push.
//
// Invariants
//
//   - A reader's only state is its cursor. It pulls from the feed when its connection can take more, so a slow one gets
//     fewer and larger frames, and holds nobody up.
//   - A frame is written whole or the connection ends; only frames with a cursor move it.
//   - No cursor is refused: where one can't be gone on from, the next frame is a snapshot.
//   - On a socket all frames of one subscription come between its "subscribed" and the next one's.
//   - A body that was cut is not the end of its stream, and the offset that is told to a producer is committed.
//   - Every goroutine ends before the handler that started it returns.
package native
