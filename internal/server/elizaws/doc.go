// Package elizaws serves the live updates of Eliza's clients: the WebSocket at /ws, the signals on it, and the state of the
// default agent. docs/eliza.md specifies the frames.
//
// The program calls [Register] once, with a started signal log, before the server starts.
//
// Invariants
//
//   - A socket without a valid token gets no frame. Any first frame except a valid auth closes it with 1008.
//   - One goroutine writes a socket's frames: the answer to auth, the status, the replay, and then live frames, each signal once and
//     in order.
//   - A slow socket costs a cursor in the signal log and one in the hub. A frame reports what it missed.
//   - The gateway stores read positions. A socket reports changes, and marks as read the conversation that its user has open.
//   - Permission to see a signal or a frame is checked when it is sent.
//   - Every goroutine ends before the handler that started it returns.
package elizaws
