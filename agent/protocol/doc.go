// Package protocol has the agent kinds for servers of four open protocols: AG-UI, A2A, LangGraph and the AI SDK. The dialects of the same
// names decode their streams. This package builds the requests: how a turn starts, how a user's answer is sent, and how a run is stopped,
// resumed and probed. All of them run on [call.Talk].
//
// Invariants
//
//   - A server's id of a conversation (its thread or context) is derived from the conversation's id, or stored as the agent's session.
//   - A request of the agent to the user doesn't end the turn: the next request to the server continues the same turn with the answer.
//   - After the first frame a run is never started again. A broken stream of LangGraph or A2A is resumed; others fail as cut short.
package protocol
