// Package agui decodes the events of the AG-UI protocol, sent as server-sent events. The protocol is defined by the event types in the
// documentation at docs.ag-ui.com.
//
// Invariants
//
//   - A text is identified by its messageId, a tool by its toolCallId. A message that starts again continues its text.
//   - In a MESSAGES_SNAPSHOT only the messages after the last user message count. Each replaces the text that was streamed for it. Messages
//     that the snapshot doesn't contain are unchanged.
//   - RUN_FINISHED and RUN_ERROR end the turn, except that a run that finishes with an interrupt asks a question and leaves the turn open.
//   - When the run ends, a tool without a result is done if the run finished, and failed if the run failed.
//   - State, activity, raw and custom events are recognized and ignored, because they aren't part of the answer.
package agui
