// Package dialect holds what all wire formats of agents' streams share. Each format is a package below it.
//
// Invariants
//
//   - A dialect is pure: frames in, operations out. No clock, goroutine, socket or randomness.
//   - A decoder invents nothing. Its operations are [event.Event] values in which Message and Part hold upstream keys or
//     ordinals, Turn an upstream run (empty: the turn that the stream answers), and Seq, At, Offset and a part's sums are
//     left to whoever maps them.
//   - A stream that was cut short is never taken for a finished one: [Decoder.Close] returns [ErrCutShort]. Only where a dialect
//     says that the end of the body is its own (Dialect.EOF) may Close end a turn, and only when its content is final.
//   - [Decoder.State] holds what the decoder holds back and where it stands, never whole texts, so that it can be stored
//     with every commit. A decoder restored from it goes on exactly as the first would have.
//   - Operations come in order: message.start before a message's first part, part.start before its texts, part.end where
//     the dialect knows that the content is final, message.end, and one turn.end for the dialect's own end.
//   - Unknown frames are counted, never an error; invalid ones are an [*Error] that names the dialect, the frame's
//     number and the reason.
//
// A [Stream] takes bytes apart into frames, a [Mapper] gives operations their ids, and a [Registry] finds a dialect by its
// name. [Text], [Snapshot] and [Segments] are the helpers that decoders are made of: the holding back of incomplete
// characters, of texts that come as snapshots, and the semantics of callbacks.
package dialect
