// Package langgraph decodes the streams of runs of a LangGraph server (Agent Server API, "stream run"), in any of its stream modes, sent as
// named server-sent events.
//
// Invariants
//
//   - A text is identified by its message's id. Chunks (mode messages-tuple) append; complete messages and those of
//     messages/partial replace the text.
//   - values and updates provide texts only if there are no events of the messages modes. In values, only the messages after the last user
//     message count.
//   - A tool is identified by the id of its call. Its result is a message of type tool.
//   - end and error end the turn, except that a run that stops for an interrupt asks a question and leaves the turn open. A stream that
//     ends without either was cut short; the agent package then queries the run by its id.
package langgraph
