// Package replay is an agent that plays a recorded or written stream, in any dialect, at the pace of its recording.
//
// Invariants
//
//   - Every turn plays the file from its beginning, whatever the message says.
//   - Where it stands is committed together with what that frame said: a restart of the gateway goes on at the next
//     frame, with nothing lost or said twice. A file that has changed in between is refused, not mixed.
//   - A stream that is cut short fails its turn.
package replay
