// Package agentsdk decodes the stream of agentsdk-go runtimes: server-sent events without names, in the shapes of the Anthropic Messages API
// with additional events of the agent's loop.
//
// Invariants
//
//   - A block is identified by its message's ordinal and its index. Text of earlier iterations is kept. A block that starts again in the
//     same message replaces the earlier one, because the runtime has retried the model call.
//   - The runtime splits a tool's arguments every ten bytes, which destroys characters. The arguments are shown as received, with a
//     title that marks them as inexact.
//   - Output with is_stderr is a piece. Output without it is the whole output: if it equals the pieces so far, it changes nothing; if it
//     extends them, the rest is appended; otherwise it replaces the output. It never changes stderr.
//   - A tool has failed if its result's metadata or is_error say so. A tool without a result fails at the next iteration or at the end.
//   - agent_stop ends the turn, and so does error, after which the runtime sends nothing. A message_stop doesn't.
package agentsdk
