// Package recording reads recorded streams of any form as the frames of a dialect, and writes one form.
//
// Three forms are told apart by their first line: the raw bytes of server-sent events; JSON lines, which are the frames
// of an NDJSON stream or the data of server-sent events; and the lines of a recorder of WebSocket connections,
//
//	{"t":1795194262752,"c":"A","dir":"in","frame":{…}}
//
// of which those that came in (dir "in") on one connection are the stream, and the first close after them its end. In place of
// a frame a line may hold a piece of a body as it came, as "raw" or, where it is no text, as "base64"; a line of dir "open"
// says what the recording is of, and begins another body. [Writer] writes such lines.
//
// Invariants
//
//   - Memory is bounded by the longest line, never by the length of the recording.
//   - A recording that stops in the middle of a frame ends before that frame; what that means for the turn is the
//     decoder's to say. A malformed line anywhere else is an error that names its number.
package recording
