// Package recording reads recorded streams of any form as the frames of a dialect.
//
// Three forms are told apart by their first line: the raw bytes of server-sent events; JSON lines, which are the frames
// of an NDJSON stream or the data of server-sent events; and the lines of a recorder of WebSocket connections,
//
//	{"t":1795194262752,"c":"A","dir":"in","frame":{…}}
//
// of which those that came in (dir "in") on one connection are the stream, and the first close after them its end.
//
// Invariants
//
//   - Memory is bounded by the longest line, never by the length of the recording.
//   - A recording that stops in the middle of a frame ends before that frame; what that means for the turn is the
//     decoder's to say. A malformed line anywhere else is an error that names its number.
package recording
