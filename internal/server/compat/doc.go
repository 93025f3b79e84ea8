// Package compat serves agents under the model APIs: Anthropic's Messages and OpenAI's Chat Completions.
//
// docs/models.md says what it serves, and what of the APIs it refuses.
//
// Invariants
//
//   - An answer is a turn of a conversation like any other: whoever may see the conversation sees it.
//   - A request without a key gets a conversation of its own. A key names a conversation of who asks, and never one of
//     somebody else.
//   - These streams only append. What may yet change (a status until its turn ends, whatever stands behind it) waits until
//     it can't. An answer whose text was changed after it was sent ends as an error, never as a whole one.
//   - The texts of a whole answer, put together, are the turn's visible text.
//   - A client that goes away stops nothing.
package compat
