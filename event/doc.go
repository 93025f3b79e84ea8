// Package event defines the canonical events of a conversation's log: their types, their JSON and their validation. The format is
// specified in docs/protocol.md. Agents speak many formats; every reader, store and renderer only has to understand these events.
//
// A program reads an event with [encoding/json] or [Event.UnmarshalJSON], checks foreign ones with [Event.Validate], and applies them
// in order of Seq with package transcript. [Event.AppendJSON] writes one.
//
// Invariants
//
//   - An event is one flat JSON object. The fields of the frequent types are in [Event]; all others are in [Body], which is nil if the
//     event has none of them.
//   - Texts are exact: [PartAppend] adds Text at Offset, counted in bytes of UTF-8, and [PartReplace] has the whole content.
//   - The same type is used for a dialect's operations. In an operation Seq, At and Offset are zero, and Turn, Message and Part are
//     upstream keys instead of ids. The gateway's mapper (package dialect) assigns the ids, and the log assigns Seq.
//   - Unknown keys are ignored, so that an older reader can read the events of a newer gateway.
//   - The package is pure: it has no clock, randomness, input or output. An Event is a plain value. It may be read by several goroutines;
//     copies share Body and the slices, so change those only before you publish the event.
package event
