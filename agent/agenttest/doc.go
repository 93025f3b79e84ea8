// Package agenttest tests agents without a gateway.
//
// A [Stage] runs an agent for one turn, as a gateway does, and records what viewers see:
//
//	stage := agenttest.NewStage(t.Context())
//	err := stage.Run(myAgent, agent.Input{Message: agent.Message{Text: "hello"}})
//	// stage.Visible(), stage.Turn() and stage.Events() are the result.
//
// Besides that, the package has three suites. Run those that fit your agent:
//
//   - [Callbacks] plays scripts of streamed text and statuses, and checks what viewers see while they grow, after the end and
//     after a reload. It is for each path from an agent to a viewer: a dialect, a transport, a client.
//   - [Faults] runs an agent with an HTTP upstream against a faulty server: errors before and within the answer, frames in
//     single bytes, broken connections, keep-alives without end, silence.
//   - [Follower] is a fake agent whose sessions also change outside the gateway. It is for tests of code that calls
//     [agent.Follower].
//
// # Invariants
//
//   - The expected texts of a [Case] are literals, or concatenations of them. No code under test computes them, so
//     a fault can't change the result and the expectation in the same way.
//   - A path may merge steps, so that a viewer skips some of the texts. It must not show another text, change their order or skip
//     the last one.
//   - A Stage is used for one turn. Its exported fields are set before Run; its methods may be called from any goroutine.
package agenttest
