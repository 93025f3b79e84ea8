// Package openaichat reads and writes the stream of the OpenAI Chat Completions API, which many servers speak.
//
// Invariants of the decoder
//
//   - A message's key is the index of its choice. A choice has one text, whatever comes between its pieces; its tools are
//     found by their index. A call without an index, or one that brings another id and a name at an index that is taken, is a
//     call of its own, as servers that imitate the API have them.
//   - Reasoning is what comes as reasoning_content or reasoning. It ends where the answer begins; what comes of it later is
//     another part.
//   - A choice ends with its finish_reason, the turn with [DONE] or, where a server leaves that out, with the end of a body in
//     which every choice has finished. A body that ends before was cut short.
//   - What the choice of index 0 finished with is the turn's reason. A filter that stops the answer is a failure.
//   - A tool's arguments are its input, as they come; without any they are {}. A call has no state, since this stream does not
//     tell what became of it.
//   - An error takes the place of a chunk and ends the turn; [DONE] behind it makes it no success. "error":null is none.
//   - Usage is the last that was told, in the chunk or in its x_groq. Chunks without choices, usage or error are counted and change nothing.
//
// Invariants of the encoder
//
//   - The first chunk has the role, the last with a choice the finish_reason; [DONE] stands behind a whole answer alone. An
//     answer that fails ends with an error in place of a chunk, and without [DONE].
//   - Every chunk of an answer has the same id, time and model.
//   - Reasoning is reasoning_content, the key by which most clients that show it know it. It is never part of the content.
package openaichat
