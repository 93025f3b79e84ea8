// Package agui decodes the events of the AG-UI protocol, as server-sent events.
//
// Invariants
//
//   - A text is known by its messageId, a tool by its toolCallId. A message that starts again goes on.
//   - Of a snapshot of messages only those count that follow the last one of the user: they are texts as they are now, in place
//     of what was streamed of them. What a snapshot does not name stays.
//   - RUN_FINISHED and RUN_ERROR are the end. A run that finishes with an interrupt asks for it and is not at its end.
//   - A tool without a result has done what it was to do where the run has finished, and failed where the run has.
//   - State, activities, raw and custom events are known and left out: they are no part of what is said.
package agui
