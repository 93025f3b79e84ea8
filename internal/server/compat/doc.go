// Package compat serves agents through the model APIs: Anthropic's Messages and OpenAI's Chat Completions. docs/models.md
// specifies the supported parts. The program calls [Register] once, before the server starts.
//
// Invariants
//
//   - An answer is a turn of an ordinary conversation. Every user who may read the conversation sees it.
//   - A request without a key gets a new conversation. A key identifies a conversation of the caller, and never one of another user.
//   - These streams only append. Content that may still change (a status until its turn ends, and everything after it) is held back until
//     it is final. An answer whose text changed after it was sent ends with an error.
//   - The concatenated texts of a complete answer are the turn's visible text.
//   - A client that disconnects stops nothing.
package compat
