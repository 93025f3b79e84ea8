// Package acp is an agent of the Agent Client Protocol: a coding agent, say, as a child process that speaks JSON-RPC over its
// standard input and output. One process serves all conversations, each in a session of its own.
//
// Invariants
//
//   - The process is started with the first turn that needs it, and again when it has ended. It ends with Close, and with the
//     gateway.
//   - A session is kept with its conversation and gone on with, after a restart of the process too where the agent can. Where it
//     can't, a new one is told what was said.
//   - What an agent asks its client for, Leat has not: no files, no terminals, no editor. Permissions are asked of whoever follows
//     the turn, never given by Leat itself.
//   - When a turn is stopped the agent is told, its open questions are answered as cancelled, and it has a moment to end; a session
//     that does not is not spoken to again.
package acp
