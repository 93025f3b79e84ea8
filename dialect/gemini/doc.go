// Package gemini reads the stream of Gemini's streamGenerateContent, asked for as SSE (alt=sse).
//
// Invariants
//
//   - A candidate is a message; its key is the candidate's index. What a candidate says are increments: a text goes on until
//     something of another kind comes, and what comes after that is another part.
//   - A call has its arguments whole, or as a list of values with their paths. These are written as JSON while they come, so
//     that nothing is held back. A call ends with the piece that does not say that it continues, with the next part, or with the
//     candidate.
//   - Code that the server runs is a tool; the result that follows gives its output and state.
//   - A toolCall is a tool that the server runs; its toolResponse finds it by id, whatever parts come between. A call without a
//     result at the candidate's end has failed.
//   - Pictures and other files inside the stream are media with a data: URL.
//   - A candidate ends with its finishReason, the turn with the end of a body in which every candidate has finished. A body that
//     ends before was cut short. A prompt that is refused, and a finish for another reason than its own end or length, are failures.
//   - Usage is the last that was told of each number. What the model thought is part of its output.
//   - Chunks and parts that are not known are counted and change nothing. Thought signatures are known and left out.
package gemini
