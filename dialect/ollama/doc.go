// Package ollama decodes the streams of Ollama's own API, /api/chat and /api/generate, as Ollama's API documentation (docs/api.md) describes
// them: one JSON object a line. The API has no version.
//
//	{"message":{"content":…,"thinking":…,"tool_calls":…}}   deltas of the answer and of the reasoning; complete calls (/api/chat)
//	{"response":…,"thinking":…}                             the same for /api/generate, which has no calls
//	{"done":true,"done_reason":…}                           the end of the turn, with the usage; it may have text too
//	{"error":…}                                             the failure of the turn
//
// Invariants
//
//   - An answer is one message with one text. Its reasoning ends when the answer begins; later reasoning is a new part. Calls arrive
//     complete, because their arguments are an object.
//   - The line with done ends the turn and may itself have text. An error replaces a line and fails the turn. A stream that ends without
//     either was cut short.
//   - A call has no state, because the stream doesn't have its result.
//   - Lines that are neither a piece of an answer nor an error are counted and ignored.
package ollama
