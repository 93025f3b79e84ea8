// Package a2a decodes the streams of the Agent2Agent protocol (a2a-protocol.org), versions 1.0 and 0.3: server-sent events with JSON-RPC
// responses, or with their results alone, as the protocol's REST binding sends them.
//
// Version 1.0 names a result by the key that contains it, version 0.3 by a "kind" inside the object:
//
//	1.0              0.3               becomes
//	task             task              the run's id, its artifacts and its status
//	statusUpdate     status-update     a status part, a question, or the end of the turn
//	artifactUpdate   artifact-update   a text, media and data parts
//	message          message           the whole answer of an agent that needs no task; it ends the turn
//	error            error             the failure of the turn, with the code of JSON-RPC
//
// Anything else is counted as unknown and ignored. The fields final (only 0.3) and lastChunk are ignored, because the final states of the
// task end the turn and all of its parts.
//
// Invariants
//
//   - An artifact is identified by its id. An update with append extends it; any other update replaces it.
//   - The status message of a working task is a status part. The message of a finished task is text, unless an artifact has the same text. A
//     stream of one message without a task is that message.
//   - A final state of the task ends the turn. A task that requires input asks a question and leaves the turn open, although its
//     stream ends.
package a2a
