// Package agui serves conversations to clients of AG-UI (https://ag-ui.com, versions 0.x and 1.0), and to CopilotKit as its runtime.
// docs/outputs/agui.md specifies what works. The program calls [Register] once, before the server starts.
//
// A run begins or continues turns and streams them. A [writer] gets the operations of the turns (package answer) and sends the events that the
// client lacks, as JSON in server-sent events or in the protocol's binary form.
//
// # Invariants
//
//   - Each text, reasoning and call is a separate message, whose id is made of those of Leat's message and part. So the messages are the same
//     in a run, after a replay, and in a snapshot.
//   - Messages of the user keep the ids that the client gave them.
//   - The ids of threads are chosen by clients. Two principals with the same id have two conversations.
//   - Text is taken back by a snapshot of all messages. It contains those that only the client has, because it would lose them otherwise.
//   - A run ends while a turn waits for a person. The next run answers, and gets a snapshot of everything before it continues.
//   - A client that disconnects stops nothing, unless it asked for it.
//   - A stream always ends with RUN_FINISHED or RUN_ERROR, also if the gateway stops. A connection that breaks ends the client's program.
//
// # What becomes of an answer
//
//   - A text is a message of the assistant, a reasoning one of the role reasoning. Both grow by deltas.
//   - A tool is a message with one call. Its arguments grow by deltas. Its result is a message of the role tool, when it is complete.
//   - A status, data and a file are activities, which are replaced as a whole.
//   - An approval and a question are interrupts at the end of the run.
//   - A request for a tool of the page is a call without a result at the end of the run.
//   - The outcome of the turn is that of the run. A failure, and an interruption by a restart, is a RUN_ERROR. If nothing runs any more when a client
//     comes back, the outcome is that of the last turn.
//
// Notes of callbacks, turns inside other turns, and the author of a message have no event.
//
// # How a client comes back
//
// The protocol has no cursor. A run without a new message, a connect and an answer get a snapshot of everything up to the head of the log at that
// moment, and then the events of what follows. The snapshot waits until the answer has been read up to there, because a shorter text would
// take back what the client has, and the client would then append to its longer one.
//
// # What the clients do
//
// These facts were found with the clients themselves, and test/compat holds the package against them.
//
//   - An event out of order ends a run: a second start of an open message, or the end of a run while a message is open.
//   - A known field with the value null ends a run, so absent values are left out.
//   - A start with the id of a message that exists appends to it.
//   - A snapshot replaces messages with the same id and removes all others. Activities and reasoning are kept if it contains none.
//   - Activities are never sent back in a request.
//   - Events are separated by an empty line without carriage returns.
//   - After a run that ended with interrupts, the client refuses to start another one that doesn't answer them all.
//   - CopilotKit 1.75 contains a client of version 0.0.59, which knows interrupts but no cancelled runs.
package agui
