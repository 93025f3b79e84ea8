// Package acp is the kind of agent that speaks the Agent Client Protocol (JSON-RPC 2.0, one message a line) over the standard input and
// output of a child process, such as a coding agent. One process serves all conversations; each conversation has its own session.
//
// A turn connects to the process (which starts it if necessary), opens the conversation's session, sends session/prompt and decodes
// every line of that session until the agent answers the prompt.
//
// Invariants
//
//   - The process is started by the first turn, and again by the next turn after it has exited. Close ends it. On Linux it never
//     outlives the gateway.
//   - The session id is stored with the conversation. After a restart of the process the session is resumed or loaded if the agent can;
//     otherwise a new session gets the conversation's history as text in its first prompt.
//   - Leat offers the agent no files, terminals or editor: such requests get a "method not found" error. Permission requests become
//     questions to the turn's readers; Leat never grants one by itself.
//   - A stopped turn sends session/cancel, answers open permission requests as cancelled and waits for the grace period. If the agent
//     doesn't answer the prompt by then, its session is abandoned, because late output would be taken for the next turn's.
package acp
