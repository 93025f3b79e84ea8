// Package langgraph serves conversations to clients of LangGraph Server, of both generations. docs/outputs/langgraph.md specifies what works. The
// program calls [Register] once, before the server starts.
//
// A thread is a conversation, an assistant is an agent, and a run is a turn, or what of a turn follows the answer to a question. The thread stream
// (client.threads.stream, and useStream of @langchain/react) has the events of all turns of a thread: a [threadWriter] makes them. A run stream
// (client.runs.stream, useStream of the older SDK, Python) has one run: a [runWriter] makes its events. Both get the operations of package answer.
//
// # Invariants
//
//   - Numbers and ids of events are functions of the log, so a client that joins again loses and doubles nothing, also after a restart.
//   - The thread stream has no cursor after a reconnect: clients drop events whose ids they know. So it reads turns exactly, one event of the log
//     after the other, and never merged. Two streams of one thread have the same events.
//   - Run streams resume after Last-Event-ID, and may be merged.
//   - Messages of the user keep the ids that the client gave them. A client that gets its message under another id shows it twice.
//   - The ids of threads are chosen by clients. Two principals with the same id have two conversations.
//   - A run ends when its turn waits for a person. The answer begins another run of the same turn.
//   - A client that disconnects stops nothing, unless it asked for it.
//
// # What becomes of an answer
//
//   - A reasoning, the text that follows it, and the calls that follow that are one message of type ai: see [groupsOf].
//   - The result of a call is a message of type tool, when it is complete.
//   - A status, a file and data are separate messages. Status and data are custom events too.
//   - An approval and a question are interrupts. A tool of the client is an interrupt that the SDK answers by itself.
//   - A stopped turn is a run that was interrupted, as in LangGraph. A failure, and an interruption by a restart, is an error.
//
// Notes of callbacks, turns inside other turns, and the author of a message have no event.
//
// # Checkpoints
//
// A thread has a checkpoint where a turn begins, waits, continues and ends. Its id and its step are the seq of the log, so both sort by time. Clients
// rely on it: @langchain/react takes the state of a lower step for an old one, and streams no message again that a state contained, before it has seen
// a higher step. So a state never contains a message that still grows.
//
// # What the clients do
//
// These facts were found with the clients themselves, and test/compat holds the package against them.
//
//   - After the end of a stream, however it ended, the thread stream is opened again, up to five times.
//   - A state doesn't replace the text of a message that was streamed. content-block-finish with the whole text does.
//   - A message that was not finished when its run ends is removed, unless a state contains it. So a state comes before each end.
//   - The id of a lifecycle event names its run (synth:RUN:...), so that clients ignore the ends of other runs.
//   - The clients of version 2.0.0 take a clean end of a run stream for success. So a gateway that stops resets the connection.
package langgraph
