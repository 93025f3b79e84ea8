// Package recording reads recorded streams, in any of three file formats, as the frames of a dialect, and writes one of the formats.
// The tests of the dialects and the agent kind replay read recordings with it, and the gateway exports the captured traffic of a
// turn with it.
//
// The first line of a recording decides its form:
//
//   - raw server-sent events, byte for byte as an upstream sent them;
//
//   - JSON lines: the frames of an NDJSON stream, or the data of server-sent events;
//
//   - the recorder form, which [Writer] writes, a line for each message of a connection:
//
//     {"t":1795194262752,"c":"A","dir":"in","frame":{…}}
//
// In the recorder form the lines of dir "in" of one connection c are the stream, and the first close after them is its end. Instead
// of "frame", a line may have a piece of a body, as "raw" or, if it isn't valid UTF-8, as "base64". A line of dir "open" describes the
// recording and begins a new body.
//
// To read, call [NewReader], then [Reader.Next] until it returns io.EOF.
//
// Invariants
//
//   - Memory is bounded by the longest line, never by the length of the recording.
//   - A recording that stops in the middle of a frame ends before that frame. The decoder then reports the stream as cut short.
//     A malformed line anywhere else is an error with the line's number.
package recording
