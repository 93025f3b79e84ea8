// Package protocol is the agents behind servers of open protocols that want a request of their own: AG-UI, A2A, LangGraph and
// the AI SDK. What their streams mean their dialects say; here is how a turn is put to them, how a person's answer goes back,
// and how a turn is stopped.
//
// Invariants
//
//   - What a server calls a conversation (its thread, its context) follows from the conversation's id or is kept with it.
//   - A question of the agent keeps the turn open: it goes on with the answer, in the same turn.
//   - From the first frame on a run is never started again. A LangGraph run is rejoined where its stream broke off.
package protocol
