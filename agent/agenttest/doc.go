// Package agenttest holds what tests of agents share: the callback cases that every path by which an agent can answer
// passes, and a stage to play one on without a gateway.
//
// A [Follower] is an agent with a scripted upstream whose sessions also change without the gateway.
//
// A callback case is a [Script] of what an agent says. [Callbacks] has a path play each of them and checks what readers
// see: the visible text while it grows and at its end, the callback history, and the text after a reload.
//
// Invariants
//
//   - The expected texts are literals, or follow from literals by the joins of the design alone: nothing that is under test
//     has a part in them.
//   - A path may merge steps, so that a reader skips states, but may not show one that is not among the expected, nor two
//     of them in another order, nor miss the last.
package agenttest
