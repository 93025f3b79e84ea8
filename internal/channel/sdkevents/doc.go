// Package sdkevents turns the stream of a turn into the events of agentsdk-go's stream, as JSON. It is for channels that are written
// against those events, such as the ones of Maven: their SendStream reads [Events] instead of Leat's own events.
//
//	func (c *Channel) SendStream(ctx context.Context, chatID string, m channel.StreamMetadata, events <-chan channel.StreamEvent) error {
//		for e, err := range sdkevents.Events(m.Turn, events) {
//
// Texts, tool calls and the outcome have events. Reasoning, files, data and questions have none: a channel that shows them reads Leat's
// events itself.
//
//	iteration_start                           an iteration begins, and readers empty their text
//	content_block_start (tool_use)            a tool call
//	content_block_delta (text_delta)          text of the answer
//	content_block_delta (input_json_delta)    input of a tool call
//	tool_execution_start                      a tool runs
//	tool_execution_output                     a piece of its output, or the whole output if it has no is_stderr
//	tool_execution_result                     the output and the failure of a tool
//	error                                     the turn failed, was cancelled ("context canceled"), or was interrupted
//
// Around these are agent_start, message_start, content_block_start (text), content_block_stop, message_delta, message_stop, iteration_stop
// and, after a turn that completed, agent_stop.
//
// Invariants
//
//   - The last event is agent_stop or error. If the channel of events is closed before the turn has ended, there is neither, which readers
//     take for an interruption.
//   - What a reader has at the end doesn't depend on how the events of the turn were merged.
//   - The text of an iteration is one block, including the blank lines between its paragraphs. A text after a tool call begins an iteration.
//   - agentsdk has no event that replaces or retracts a text. If the text of the iteration changes other than by growing, its block
//     starts again, empty, and the next iteration has the whole new text. So the text is right for readers that empty it at
//     iteration_start, and for those that keep the text of every iteration.
//   - A text of an earlier iteration that changes is sent again, as a part of the current one. Readers that keep earlier iterations then
//     have both versions; for them, its retraction has no effect.
//   - An iteration begins when no tool runs, because agentsdk runs tools within their iteration and its readers give up those without a
//     result. A text that must begin one waits until then, and a text that was replaced waits for calls that have not run yet, too. The
//     message of an iteration is open until then, also while its tools run.
//   - tool_execution_start waits until the input is complete, because readers summarize the input when the tool starts. It doesn't wait
//     if the tool has output, or another part follows.
//   - tool_execution_result is the last event of its tool. A tool that a person refused has failed for readers. A retracted output stays.
//
// The package is pure: it has no goroutine, clock, input or output.
package sdkevents
