// Package acp decodes what an agent of the Agent Client Protocol says during one prompt: lines of JSON-RPC, version 1, and what
// the draft of version 2 adds.
//
// Invariants
//
//   - A text goes on as long as chunks of its kind follow each other, or by its messageId where the agent gives one. Chunks
//     extend; a whole message of version 2 is the text as it is now.
//   - A tool is known by its toolCallId. Its content comes whole each time, and so does the plan, which is a reasoning with a
//     title.
//   - The response to the prompt is the end, by its stopReason or its error; in version 2 it is the state idle. Other responses are
//     not.
//   - A request for a permission is asked. What else an agent requests of its client is counted and nothing more: answering
//     is not a decoder's business.
package acp
