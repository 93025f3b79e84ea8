// Package letta decodes what Letta's two kinds of servers stream: the V1 REST API's server-sent events, and what Letta Code
// writes, be it the frames of its App Server's WebSocket or the lines of its headless mode (--output-format stream-json).
//
// Invariants
//
//   - Chunks are deltas and append, but for what a tool gives on the App Server, which comes as snapshots, and whole calls
//     that come again.
//   - A part goes on as long as the kind stays, and the otid, or where one is missing the id. V1 gives a step one id, App
//     Servers before 0.32.17 give each chunk one, later ones each part: none of them tells text before a thought from text
//     after it, which the change of kind does. A seed's group, such as reasoning with its tool call, is a message of ours:
//     what one step of the model said, told by run and step.
//   - Tools are told by their call ids, and so are their returns. A tool's part ends with its last return.
//   - An approval request is a tool without a state. On V1 the stop reason requires_approval makes the turn wait, on the App
//     Server a control_request does: there most requests are allowed without asking anybody. A request that somebody else
//     answered shows by what becomes of its tool.
//   - A chunk whose seq_id is not above the last one of its run is a repetition and changes nothing, unless it is a snapshot
//     that goes on from all that its part has.
//   - A retry repeats the step: what the failed try said is taken back. If that was one text, the next try continues in it.
//   - The output of a running tool comes as snapshots, and later as windows of its end. Readers keep all that they have seen of
//     it, even if the server stores less; the tool's data then says how much.
//   - The headless mode has no last line for errors: if a stream ends behind an error, that error is the turn's.
//   - V1 ends with its stop reason and what belongs to it: usage, error or [DONE], whichever comes first. The App Server ends
//     a turn by turn_finished alone: an abort has no stop reason, a retry has several. A recording of a connection may hold
//     several turns; each is named by its first run.
//   - History repairs, and never replaces what was shown: a list of messages that comes while a turn is open gives what is
//     missing at the end of a part that it goes on from, and the parts that are not known.
//   - What subagents say is no part of the turn's answer and is left out.
//   - The state holds lengths, checksums and what is held back, never whole texts, and is bounded whatever comes.
package letta
