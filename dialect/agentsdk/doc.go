// Package agentsdk decodes the stream of agentsdk-go runtimes (cexll/agentsdk-go, stellarlinkco/agentsdk-go and their forks), which
// POST /v1/run/stream sends: server-sent events without names, in the shapes of the Anthropic Messages API with additional events of the
// agent's loop. The runtimes have no specification, so the events that they send are the reference.
//
//	message_start, content_block_*, message_delta    texts and tool calls, as in the Messages API
//	iteration_start                                  the step of the turn; it ends the tools of the step before
//	tool_execution_start, _output, _result           the state, output and result of a tool
//	agent_stop                                       the turn is complete
//	error                                            the turn has failed, or was cancelled
//
// ping, agent_start and iteration_stop are recognized and ignored: the first two have no content, and versions disagree about whether
// iteration_stop is sent before or after the tools. Other types are counted as unknown.
//
// Invariants
//
//   - A block is identified by its message's ordinal and its index. Text of earlier iterations is kept. A block that starts again in the
//     same message replaces the earlier one, because the runtime has retried the model call.
//   - The runtime splits a tool's arguments every ten bytes, which destroys characters. The arguments are shown as received, with a
//     title that marks them as inexact.
//   - Output with is_stderr is a piece. Output without it is the whole output: if it equals the pieces so far, it changes nothing; if it
//     extends them, the rest is appended; otherwise it replaces the output. It never changes stderr.
//   - A tool has failed if is_error is true in its event or in the metadata of its result, or if the metadata has an error. A tool
//     without a result fails at the next iteration or at the end.
//   - agent_stop ends the turn, and so does error, after which the runtime sends nothing. A message_stop doesn't.
package agentsdk
