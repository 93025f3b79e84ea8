// Package acp decodes the messages of an agent of the Agent Client Protocol (agentclientprotocol.com) during one prompt: lines of JSON-RPC in
// protocol version 1, and the additions of the draft of version 2.
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
