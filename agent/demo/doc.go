// Package demo is the built-in agent kind. It needs no model, no network and no key.
//
// It shows everything that an agent can do in a conversation: reasoning, tools with streamed output, statuses, Markdown, requests to the
// user, and failures. It answers questions that can be computed: arithmetic, dates, letters of a word, statistics of a text, brackets
// in code.
//
// Each kind of question has a skill in a separate file. [Agent.Run] makes a [stage] for the turn, chooses the skill by the message, and
// calls it. To add a skill, write a function of type skill and add it to choose, or to commands if a first word selects it.
//
// Invariants
//
//   - The answer depends only on the message, the history and the clock. It is the same at every pace, which tests rely on.
//   - Every statement is computed. If the agent can't answer, it admits that and describes the text of the message instead.
//   - When the context is done, the agent stops at the next word.
package demo
