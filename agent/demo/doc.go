// Package demo is an agent that is built in and needs nothing: no model, no network, no key.
//
// It shows all that an agent can do in a conversation (reasoning, tools with streamed output, statuses, Markdown,
// questions to a person, failures) and works out what it was asked where it can: arithmetic, dates, letters, words, code.
//
// Invariants
//
//   - What it says depends on the message, the history and the clock alone, not on chance or on its pace.
//   - It says what it computed. What it can't answer it says so, and tells of the text itself.
//   - When the context is done it stops at the next word.
package demo
