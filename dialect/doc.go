// Package dialect holds what all wire formats of agents' streams share. Each format is a package below it.
//
// Invariants
//
//   - A dialect is pure: frames in, operations out. No clock, goroutine, socket or randomness.
//   - A decoder invents nothing. Its operations are [event.Event] values in which Message and Part hold upstream keys or
//     ordinals, Turn an upstream run (empty: the turn that the stream answers), and Seq, At, Offset and a part's sums are
//     left to whoever maps them.
//   - A stream that was cut short is never taken for a finished one: [Decoder.Close] returns [ErrCutShort].
//   - [Decoder.State] holds what the decoder holds back and where it stands, never whole texts, so that it can be stored
//     with every commit. A decoder restored from it goes on exactly as the first would have.
//   - Unknown frames are counted, never an error; invalid ones are an [*Error] that names the dialect, the frame's
//     number and the reason.
package dialect
