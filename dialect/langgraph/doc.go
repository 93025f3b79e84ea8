// Package langgraph decodes the streams of runs of a LangGraph server (Agent Server API, "stream run"), in any of its stream modes, sent as
// named server-sent events. The name is the stream mode; a subgraph adds its namespace, as in "values|ns".
//
//	messages                              chunks of one message: texts, reasoning, tool calls, results of tools
//	messages/partial, messages/complete   the same as whole messages
//	values, updates                       the graph's state, or what a node changed in it: messages and interrupts
//	metadata                              the id of the run
//	custom                                the phase of the turn, if the data is a short string
//	error                                 the failure of the turn
//	end                                   the turn is complete, unless a question is open
//
// messages/metadata, debug, events, tasks, checkpoints and feedback are recognized and ignored: they describe the execution of the graph and
// repeat what the modes above have. Other events, and messages of unknown types, are counted as unknown.
//
// Invariants
//
//   - A text is identified by its message's id. Chunks (mode messages-tuple) append; complete messages and those of
//     messages/partial replace the text.
//   - values and updates provide texts only if the stream has no events of the messages modes. In values, only the messages after
//     the last user message count.
//   - A tool is identified by the id of its call. Its result is a message of type tool.
//   - end and error end the turn, except that a run that stops for an interrupt asks a question and leaves the turn open. A stream that
//     ends without either was cut short; the agent package then queries the run by its id.
package langgraph
