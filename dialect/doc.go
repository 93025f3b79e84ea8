// Package dialect decodes the streams of agents, whatever their wire format, into the canonical operations of package event. Each
// format is a subpackage, such as dialect/anthropic; package dialect/all has them all. Programs that embed Leat use it to read an agent's
// stream without the gateway.
//
// A [Stream] splits bytes into frames and decodes them, and a [Mapper] turns the operations into events with ids:
//
//	d, err := all.Registry().Lookup("anthropic")
//	...
//	s := dialect.NewStream(d)
//	m := dialect.NewMapper(turnID, newID)
//	for each piece of the body {
//		ops, err := s.Write(piece)
//		events, err2 := m.Map(ops, now) // ops precede err: map them even if err isn't nil
//	}
//	ops, err := s.Close()
//
// To continue later, in this process or another one, store [Stream.State] and [Mapper.State] together with the events, restore both into
// new values, and write the body from [Stream.Offset] on.
//
// Invariants
//
//   - A dialect is pure: frames in, operations out, without clocks, goroutines, sockets or randomness.
//   - A decoder invents nothing. Its operations are [event.Event] values in which Message and Part are upstream keys or ordinals and Turn is
//     an upstream run, or empty for the turn that the stream answers. The Mapper fills in At, Offset and the checksums; the log assigns Seq.
//   - A stream that was cut short is never reported as finished: [Decoder.Close] returns [ErrCutShort]. Only if the end of the body is the
//     format's own end ([Dialect.EOF]) may Close end a turn, and only after the upstream has marked its content as final.
//   - [Decoder.State] has the buffered bytes and the position, never whole texts, because it is stored with every commit. A decoder restored
//     from it returns exactly what the original would have returned.
//   - Operations are in order: message.start before a message's first part, part.start before its texts, part.end when the
//     content is known to be final, message.end, and one turn.end for the format's own end.
//   - Unknown frames are counted and otherwise ignored. An invalid frame is an [*Error] with the dialect, the frame's number and the reason.
//
// Streams, decoders and mappers are not safe for concurrent use; a [Registry] is. [Text], [Snapshot] and [Segments] are building blocks of
// decoders: for characters split between deltas, for texts sent as snapshots, and for callbacks that replace status texts.
package dialect
