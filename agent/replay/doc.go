// Package replay is an agent kind that plays a recorded or hand-written stream, in any dialect, at its recorded pace. It serves demos,
// tests and the reproduction of problems: the same file always leads to the same events.
//
// Invariants
//
//   - Every turn plays the whole file and ignores the message.
//   - The position is committed together with the operations of its frame. After a restart of the gateway the turn resumes at the next
//     frame, so nothing is lost or repeated. If the size of the file has changed, the turn fails.
//   - A file that ends before the end of the turn fails the turn as cut short.
package replay
