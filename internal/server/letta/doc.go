// Package letta serves agents and conversations to clients of Letta's V1 REST API: Letta Code and the packages letta-client of npm and PyPI.
// docs/outputs/letta.md specifies what works. The program calls [Register] once, before the server starts.
//
// A client sends a message and gets the frames of a run. A [writer] turns the operations of a turn (package answer) into frames.
//
// # Invariants
//
//   - An agent of Leat is an agent of Letta, a conversation is a conversation, and a turn is a run. Their ids are Leat's with a prefix.
//   - The seq_id of a frame is the number of its operation times a constant, plus its place among the frames of the operation. So it depends on the
//     log alone, and a resume after it gets the frames that follow, in any replay.
//   - Frames can only append. A status is sent when it can't be replaced any more, and text that is taken back ends the run with an error.
//   - Each part has one id, which is the same in frames and in lists. Text that continues after another part or a request has a suffix in frames.
//   - A run ends for the client at the first request that is open. The answer is a new HTTP request, whose frames continue the same run after it.
//   - Letta Code never gets a call of a tool that the agent runs, because it would run its own tool of that name.
//   - A client that disconnects stops nothing.
//
// # What becomes of an answer
//
//   - A text and a reasoning are assistant_message and reasoning_message. Each piece of a text is a frame with the id of its part.
//   - A tool is a tool_call_message, whose arguments come in pieces, and a tool_return_message when its part has ended.
//   - A request is an approval_request_message. If it is about a tool that the agent has begun, it has the id of that call. For Letta Code it is a call of the tool
//     that asks its user. Its answer, from any client, is the result of that call.
//   - The outcome of the turn is the stop_reason. A failure is an error too, with the event name that makes clients throw.
//   - Files, data and the notes of callbacks have no message.
//
// # Numbers
//
// A client that was cut has some frames of an operation and not the others. The response to its resume makes the frames of that operation again and
// leaves out those up to the client's seq_id. An operation that is merged with earlier ones is an append to one text, which has one frame, so that
// the frames have the same places in a replay from the compacted log.
//
// The frames at the end of a response have no number: they are sent again if the client was cut between them.
//
// # What the clients do
//
//   - Frames must not have an event name, except errors, which make the client throw.
//   - The end of the body ends the iteration, not the frame [DONE].
//   - A list is asked for again, after its last element, until it is empty. So the parameters after and before must be obeyed.
//   - Letta Code knows a run only by the leading ping, from which it resumes.
//   - Letta Code doesn't change a message on its screen after the next one began or a response has ended.
//   - Letta Code finds the open requests at its start only by the last id in the context of the conversation, and sorts messages by their dates.
//   - After a stop, Letta Code sends the messages since then again, with other ids.
//   - The client for Python takes a frame without a date for one of another type.
package letta
