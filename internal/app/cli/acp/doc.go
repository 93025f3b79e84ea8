// Package acp lets editors talk to the agents of a gateway, by the Agent Client Protocol (version 1, JSON-RPC, one message a line) over
// standard input and output. It is a client of the gateway: a session of an editor is a conversation.
//
// A host serves one editor. Each open session follows its conversation. A writer compares the transcript with what the editor has
// got, and sends the difference. So it doesn't matter how many changes arrive at once, or what happened to the connection in between.
//
// # Invariants
//
//   - The editor gets every text once and in order. Text that may still change is buffered, because the protocol can't take text back. If an
//     agent takes back text nevertheless, the whole text is sent again when it is final.
//   - What arrives before the response to session/load is the history, including the part of an answer that exists already. A prompt is
//     answered after all updates of its turn.
//   - The end of the input ends the host, and never a turn. Only session/cancel, session/close and the cancellation of a prompt stop turns.
//   - The first answer to a question counts. If another client has answered, the editor's question is withdrawn.
//   - Nothing but messages of the protocol is written to the output.
package acp
