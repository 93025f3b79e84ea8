// Package openaichat decodes and encodes the stream of the OpenAI Chat Completions API ("chat completion chunk object" in the API reference),
// which many servers imitate. The API has no version; [DONE] ends a stream.
//
// A chunk may have the model, the usage and, for each choice, a delta:
//
//	content, refusal                                     the text
//	reasoning_content, reasoning, blocks of "thinking"   reasoning
//	tool_calls, function_call (the older form)           a tool with its input
//	finish_reason                                        the end of the choice's message
//	error, or an event named "error"                     the failure of the turn
//
// Fields that aren't part of the answer, such as logprobs and the fingerprint of the system, are ignored.
//
// Invariants of the decoder
//
//   - The key of a message is the index of its choice. A choice has one text, whatever comes between its pieces. Its tools are identified by
//     their index. A call without an index, or with a new id and name at a used index, is a new call, because imitating servers send both.
//   - reasoning_content and reasoning are reasoning. A reasoning part ends when the answer begins; later reasoning is a new part.
//   - A choice ends with its finish_reason. The turn ends with [DONE] or, because some servers omit it, with the body if every choice has
//     finished. A body that ends before was cut short.
//   - The turn's reason is that of choice 0. An answer stopped by a content filter is a failure.
//   - The deltas of a tool's arguments are its input; without deltas the input is {}. A call has no state, because the stream doesn't
//     have its result.
//   - An error replaces a chunk and fails the turn; a later [DONE] doesn't change that. "error":null isn't an error.
//   - Usage is the last one reported, in a chunk or its x_groq. Chunks without choices, usage or error are counted and ignored.
//
// Invariants of the encoder
//
//   - The first chunk has the role, the last chunk with a choice the finish_reason. [DONE] follows only a complete answer. An answer
//     that fails ends with an error instead of a chunk, and without [DONE].
//   - Every chunk of an answer has the same id, time and model.
//   - Reasoning is sent as reasoning_content, the key that most clients understand. It is never part of the content.
package openaichat
