// Package agent defines what answers turns: the [Agent] interface, the [Emitter] that it speaks through and the
// optional abilities that it may have.
//
// Invariants
//
//   - Run returns when its turn is over. A nil error completes the turn unless the agent ended it itself; an error fails it.
//   - When the context is done, the turn has ended already, and nothing that is emitted later is seen.
//   - Every method of the Emitter may block while the log can't take more; it returns an error only when the turn is over.
//   - Callback semantics (replace, append, history) are those of [github.com/leat-dev/leat/dialect.Segments], the same on
//     every path by which an agent can answer.
package agent
