// Package ollama reads the streams of Ollama's own API, /api/chat and /api/generate: a line of JSON a piece.
//
// Invariants
//
//   - An answer is one message with one text. Its reasoning ends where the answer begins; what comes of it later is another
//     part. Calls are told whole: their arguments are an object.
//   - The line with done is the turn's end, and may say something itself. An error takes the place of a line and ends the turn.
//     Lines that end without either were cut short.
//   - A call has no state, since this stream does not tell what became of it.
//   - Lines that are neither a piece of an answer nor an error are counted and change nothing.
package ollama
