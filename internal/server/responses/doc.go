// Package responses serves agents through OpenAI's Responses API and its conversations. docs/outputs/responses.md specifies what works. The
// program calls [Register] once, before the server starts.
//
// A response is what a turn answers until it ends or waits for the client. A [writer] turns the operations of the answer (package answer) into the
// response's events. Whole responses are made by the same writer, so the object and the stream can't differ.
//
// # Invariants
//
//   - Sequence numbers depend on the log alone. An operation has a range of them, so its events have the same ones in each reading. Where the
//     log has merged appends, there are fewer events with the same numbers.
//   - Ids are made of Leat's own ids. Nothing is stored that maps one to the other.
//   - The last event has the whole output, which is the truth for all clients. So text that was taken back is right in the end.
//   - The texts of all messages of an output, joined without a separator, are the visible text of the turn.
//   - The agent's own tools are never function calls, because clients run those.
//   - A client that disconnects stops nothing.
//
// # Numbers
//
// The sequence number of an event is the number of its operation times 1000, plus the count of the operation's events before it. An append to a
// text has one event. The beginning and the end of a part have several, and a client that was disconnected between them gets the others when
// it resumes. The last operation of a response may have more than 1000, since none follows.
//
// Appends are read as they were committed, and not merged with their neighbours, because a client that reads everything again drops what it
// has by the numbers. When the trace of a turn has expired, the log has merged appends only. Their numbers are those of their ends.
//
// # What becomes of an answer
//
//   - A text is a message with one part. It begins with the separator between it and the text before.
//   - A status is a message when no later status can replace it.
//   - A reasoning is an item with one summary.
//   - A tool is a call of the remote server leat, when it has run.
//   - A request for a tool of the client is a function call, an approval is an approval request, and a question is a message.
//   - The outcome of the turn is the status of the response. A failure, and an interruption by a restart, is failed.
//
// Files, data, notes of callbacks, turns inside other turns, and the author of a message have no item.
//
// # Waits
//
// A response ends at a wait, and the answer begins another response of the same turn. Its id has the number of the operation that answers, so it
// can be read again. In the log, a response goes up to the next answer: a reader that comes later may find more in it than the one that
// was there, if the agent went on while it waited, but never less.
//
// # What the clients do
//
// These facts were found with the clients themselves, and test/compat holds the package against them.
//
//   - The first event must be response.created, and items must be added in the order of their indexes.
//   - An unknown event is an error, and so is response.cancelled. A stopped turn ends with response.incomplete.
//   - The output of the last event replaces everything before.
//   - A stream without a last event looks like an answer, so it ends with an error.
//   - A stream that resumes by its helper reads everything from the beginning, and drops what it has by the numbers.
package responses
