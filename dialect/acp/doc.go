// Package acp decodes the messages of an agent of the Agent Client Protocol (agentclientprotocol.com) during one prompt: lines of JSON-RPC in
// protocol version 1, and the additions of the draft of version 2.
//
// The frames and what becomes of them:
//
//	session/update with agent_message_chunk, agent_thought_chunk   append to a text or a reasoning part; images and links are media
//	session/update with agent_message, agent_thought (version 2)   replace a text or a reasoning part
//	session/update with tool_call, tool_call_update                a tool with its input, output, title and state
//	session/update with plan                                       a reasoning part with the title "Plan"
//	session/update with state_update "idle" (version 2)            the end of the turn
//	session/request_permission                                     a question with the agent's options
//	a response with a stopReason, or an error                      the end of the turn
//
// These updates are recognized and ignored: the user's own messages, because Leat has them already, and commands, modes, options, session
// information and usage, because they belong to the session and not to the answer. Everything else is counted as unknown.
//
// Invariants
//
//   - Consecutive chunks of a kind form one text. If the agent sends a messageId, that identifies the text instead. Chunks
//     append; a complete message of version 2 replaces the text.
//   - A tool is identified by its toolCallId. Each update has the tool's whole content. A plan update has the whole plan, which is a
//     reasoning part with a title.
//   - The response to the prompt ends the turn, by its stopReason or its error; in version 2 the state idle does. Other responses don't.
//   - A request for permission becomes a question. All other requests of the agent are counted as unknown; answering them is the job of
//     the agent package, not of the decoder.
package acp
