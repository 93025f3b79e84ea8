// Package elizaws is the live surface that Eliza's clients know: the WebSocket at /ws, the signals that are shown on it, and the
// state of the default agent. docs/eliza.md says what is on the wire.
//
// Invariants
//
//   - A socket that has not shown a token is told nothing, and anything but a valid auth closes it with 1008.
//   - What a socket is sent is written by one goroutine: the answer to auth, the status, the replay, and then what happens,
//     each signal once and in order.
//   - A slow socket costs a cursor in the log of signals and one in the hub. What it could not follow is said in-band.
//   - How far somebody has read lies with the gateway. A socket tells it, and marks as read what its user looks at.
//   - Who may see a signal or a frame is asked when it is sent.
//   - Every goroutine ends before the handler that started it returns.
package elizaws
