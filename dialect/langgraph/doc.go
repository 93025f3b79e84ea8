// Package langgraph decodes the streams of runs of a LangGraph server, in any of its stream modes, as named server-sent events.
//
// Invariants
//
//   - A text is known by its message's id. Chunks (mode messages-tuple) extend it; whole messages, and those of
//     messages/partial, are the text as it is now.
//   - values and updates tell texts only where no event of the messages modes does: of values, those behind the last message of
//     the user.
//   - A tool is known by the id of its call; its result is a message of type tool.
//   - end and error are the end. A run that stops for an interrupt asks for it, and is not at its end. A server that closes a
//     stream without either is one that was cut: whoever has the run's id asks what became of it.
package langgraph
