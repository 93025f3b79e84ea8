// Package agui decodes the events of the AG-UI protocol, sent as server-sent events. The protocol is defined by the event types in the
// documentation at docs.ag-ui.com and in the package @ag-ui/core; this decoder reads those of version 1.0 and the older THINKING events.
//
//	TEXT_MESSAGE_CONTENT, TEXT_MESSAGE_CHUNK                           a text
//	REASONING_MESSAGE_CONTENT, REASONING_MESSAGE_CHUNK, THINKING_...   a reasoning part
//	TOOL_CALL_START, TOOL_CALL_ARGS, TOOL_CALL_CHUNK                   a tool with its input
//	TOOL_CALL_RESULT                                                   the output and state of a tool
//	MESSAGES_SNAPSHOT                                                  all texts and tools of the answer so far
//	RUN_STARTED, STEP_STARTED                                          the run's id; the phase of the turn
//	RUN_FINISHED, RUN_ERROR                                            the end of the turn, or questions
//
// The other events of the protocol are recognized and ignored. Those that begin or end a text or a call have no content: a part begins with
// its first text, and a message that starts again continues it. State, activity, raw and custom events aren't part of the answer.
//
// Invariants
//
//   - A text is identified by its messageId, a tool by its toolCallId. A message that starts again continues its text.
//   - In a MESSAGES_SNAPSHOT only the messages after the last user message count. Each replaces the text that was streamed for it. Messages
//     that the snapshot doesn't contain are unchanged.
//   - RUN_FINISHED and RUN_ERROR end the turn, except that a run that finishes with an interrupt asks a question and leaves the turn open.
//   - When the run ends, a tool without a result is done if the run finished, and failed if the run failed.
package agui
