// Package openairesponses reads the stream of the OpenAI Responses API, with or without the names of its SSE events.
//
// Invariants
//
//   - All output of a response is one message. A part's key is made of output_index and content_index, never of item_id: some
//     servers send another one with each event.
//   - Deltas are appended. What is done repeats the whole text, and so does what it is part of: these are snapshots, which
//     change only what deltas have left out. A part that is done is final.
//   - An event whose sequence_number is not above the last one was seen before, as where a response is followed from an
//     earlier point than was asked for, and changes nothing.
//   - An mcp_approval_request is a question. A response that ends with open questions doesn't end the turn: the next response
//     continues it, in a message of its own, and the call that was approved is shown where it was asked for.
//   - A call that the server runs has a state, and its input and output where the item tells them; one that a client is to
//     run has none, unless its output comes in an item of its own, which finds it by call_id. A tool search that the server runs
//     has no call_id: its output is of the oldest search that has none.
//   - The turn ends, unless it waits for an answer, with response.completed, incomplete, failed or cancelled, or with an error event. A response that a filter
//     cut off is a failure; one that reached its length is complete.
//   - The output that a last event lists is read only where no item came before it: items that are left out of it shift the rest.
//   - Events and items that are not known are counted and change nothing. Annotations, partial images, the progress of calls and
//     encrypted reasoning are known and left out.
package openairesponses
