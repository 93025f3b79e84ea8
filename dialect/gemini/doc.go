// Package gemini decodes the stream of the Gemini API's streamGenerateContent method, versions v1 and v1beta, requested as server-sent events
// (alt=sse). Every frame is a GenerateContentResponse, as the API reference describes it. The format has no end frame.
//
// The parts of a candidate become:
//
//	text; text with thought             a text; reasoning
//	functionCall                        a tool with its input, for the client to run
//	executableCode, toolCall            a tool that the server runs
//	codeExecutionResult, toolResponse   its output and state
//	inlineData, fileData                media
//
// Besides its candidates a frame may have the usage, the model, the reason why the prompt was rejected, or an error.
//
// Invariants
//
//   - A candidate is a message; its key is the candidate's index. Its contents are increments: a text continues until a part of another
//     kind, and text after that is a new part.
//   - A call has complete arguments, or a list of values with their JSON paths. The values are written as JSON as they arrive, so that
//     readers see the arguments grow. A call ends with the piece that isn't marked as continued, with the next part, or with the candidate.
//   - Code that the server runs is a tool. The result that follows has its output and state.
//   - A toolCall is a tool that the server runs. Its toolResponse is matched by id, even after other parts. A call without a result fails at
//     the end of the candidate.
//   - Images and other inline files are media with a data: URL.
//   - A candidate ends with its finishReason. The turn ends with the body if every candidate has finished; otherwise the body was cut short.
//     A rejected prompt, and a finish for another reason than the model's own end or the length limit, is a failure.
//   - Usage is the last value reported for each number. Thinking tokens are part of the output.
//   - Unknown chunks and parts are counted and ignored. Thought signatures are recognized and ignored.
package gemini
