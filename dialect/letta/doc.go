// Package letta decodes the streams of Letta's two servers: the server-sent events of the V1 REST API ([New]), and the output of Letta
// Code ([NewCode]), which is either the WebSocket frames of its App Server or the lines of its headless mode (--output-format
// stream-json). agent/letta connects to both servers; headless output comes from agents
// whose dialect is set to letta-code.
//
// # Order of calls
//
// Decode is called for each frame in order; then Close, which reports an incomplete stream. In between, the state may be stored with
// State and loaded into another decoder with Restore. agent/letta also asks the decoder for the cursor, for pending approvals and for
// open tools, and records users' decisions with RecordAnswer.
//
// # Invariants
//
//   - Chunks are deltas and are appended. Two things come as snapshots instead: the output of a running tool on the App Server, and
//     complete tool calls that are sent again.
//   - A text part continues while the kind of the chunks and their otid stay the same; without an otid their id decides. Ids alone
//     don't suffice: V1 gives a whole step one id, App Servers before 0.32.17 give each chunk another one, and later versions give
//     each part one. None of them separates the text before a thought from the text after it; the change of kind does.
//   - What the model produced in one step is one message, identified by run and step: for example reasoning and the tool call after it.
//   - Tools and their results are identified by the call id. A tool's part ends with its last result.
//   - A request for approval starts a tool without a state. On V1 the stop reason requires_approval makes the turn wait; on the App
//     Server a control_request does, since the server approves most calls itself. If another client answers the request, no frame
//     reports that; the tool's start or end proves it.
//   - A chunk whose seq_id is not higher than the last one of its run is a repetition and is ignored, unless it is a snapshot that
//     extends the open part.
//   - A retry repeats a step, so the text of the failed attempt is removed. If the attempt had only text, the next one continues in
//     the same part.
//   - The output of a running tool arrives as snapshots of all of it, and later as windows of its end. Readers keep all output they
//     have seen, even if the server stores less; the tool's data then says how much the server has.
//   - The headless mode has no last line after an error. If the stream ends after an error, the turn has failed with that error.
//   - A V1 turn ends with its stop reason and whatever follows that first: usage, an error or [DONE]. A turn of the App Server ends only
//     with turn_finished, because an aborted turn has no stop reason and a retried one has several. A recorded connection may contain
//     several turns; each is named after its first run.
//   - A history repairs an answer but never replaces text that was shown. If a list of messages arrives during a turn, it supplies
//     the missing ends of open parts, and the parts that are missing altogether.
//   - Output of subagents is not part of the answer and is dropped.
//   - The state contains lengths, checksums and unfinished characters, never complete texts, so its size is bounded.
package letta
