// Package agentsdk decodes the stream of agentsdk-go runtimes: server-sent events of data alone, in the shapes of the
// Anthropic API with events of the agent's loop between them.
//
// Invariants
//
//   - A block is known by its message's ordinal and its index. Text of earlier iterations stays; a block that starts again in
//     the same message takes the place of what it was, since the runtime has asked its model anew.
//   - The runtime cuts a tool's arguments every ten bytes and so destroys characters. They are shown as they come, and a
//     title says so where they are not exact.
//   - Output with is_stderr is a piece, output without is all there is: equal to the pieces so far, it changes nothing. If it
//     extends them, the rest is output; if it differs, it replaces the output, and never what went to stderr.
//   - A tool has failed where its result's metadata say so, or is_error does. One that never got a result has failed too, at
//     the next iteration or at the end.
//   - agent_stop is the end, and so is error, after which the runtime sends nothing; a message_stop is none.
package agentsdk
