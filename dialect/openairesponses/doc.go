// Package openairesponses decodes the stream of the OpenAI Responses API ("streaming events" in the API reference). It accepts
// events with and without SSE names. The API has no version.
//
//	response.created, queued, in_progress                   the id of the response and the model
//	response.output_text.*, refusal.*, content_part.*       texts
//	response.reasoning_text.*, reasoning_summary_*          reasoning
//	response.*_arguments.*, *_input.*, *_call_code.*        the input of a tool
//	response.output_item.added, output_item.done            tools with their results, questions, and whatever the deltas have missed
//	response.completed, incomplete, failed, cancelled       the end of the turn, unless a question is open
//	error                                                   the failure of the turn
//
// Invariants
//
//   - The whole output of a response is one message. The key of a part consists of output_index and content_index, never of item_id,
//     because some servers send another item_id with each event.
//   - Deltas append. A done event, and the done events of the parts around it, repeat the whole text: these are snapshots, which add only
//     what the deltas have missed. A part is final after its done event.
//   - An event whose sequence_number isn't above the last one is skipped. Servers repeat events when a response is resumed from an earlier
//     point than requested.
//   - An mcp_approval_request is a question. A response that ends with open questions doesn't end the turn: the next response continues it in
//     a new message, and an approved call is shown at the place of its question.
//   - A call that the server runs has a state, and input and output if the item has them. A call that a client runs has no state, unless an
//     item with its output, matched by call_id, follows. A tool search that the server runs has no call_id; its output belongs
//     to the oldest search without one.
//   - Unless it waits for an answer, the turn ends with response.completed, incomplete, failed or cancelled, or with an error event. A
//     response stopped by a content filter is a failure; one that reached its length limit is complete.
//   - The output list of the last event is read only if no item was streamed, because items missing from the list shift the indexes of the
//     others.
//   - Unknown events and items are counted and ignored. Annotations, partial images, progress of calls and encrypted reasoning are
//     recognized and ignored.
package openairesponses
