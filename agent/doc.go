// Package agent defines the contract between the gateway and the agents that answer turns.
//
// # Writing an agent
//
// An agent is a Go type with the method Run. The gateway calls Run once for each turn, and Run writes the answer to an [Emitter]:
//
//	type echo struct{}
//
//	func (echo) Run(ctx context.Context, in agent.Input, emitter *agent.Emitter) error {
//		for _, word := range strings.SplitAfter(in.Message.Text, " ") {
//			if err := emitter.Text(word); err != nil {
//				return err // the turn is over
//			}
//		}
//		return nil // the turn is completed
//	}
//
// A program that embeds Leat passes its agents to the gateway by name; see the example of [Agent]. To make an agent available in
// the configuration file, write a function that returns a [Kind] and add it to the list in package agent/all:
//
//	func Kind() agent.Kind {
//		return agent.Kind{
//			Name:    "echo",
//			Summary: "repeats the message",
//			New:     func(agent.Spec) (agent.Agent, error) { return echo{}, nil },
//		}
//	}
//
// A [Spec] is one configured agent of a kind. [Kinds] validates specs, makes agents and masks secrets for display.
//
// An agent whose upstream sends a stream in a known format doesn't call Text, Tool and the like. It passes the stream to [NewStream],
// which decodes it with a dialect. An agent that fails returns an [*Error], whose message viewers see; the text of any other error is
// only for operators.
//
// Package agenttest runs an agent without a gateway and has test suites for agents.
//
// # Optional interfaces
//
// The gateway finds these with type assertions. An agent implements those that its upstream supports:
//
//   - [Resumer] continues a turn after a restart of the gateway. If the upstream needs the connection, it is also a [Drainer].
//   - [Steerer] accepts messages while a turn runs; a [Chooser] knows which turns can.
//   - [Answerer] gets users' answers to requests that a decoder emitted.
//   - [Stopper] cleans up after a turn that was ended from outside.
//   - [Prober] asks the upstream about a silent turn, and [Checker] whether it works at all.
//   - [Pusher] leaves the stream of a turn to another program.
//   - [Keeper] has a connection or a process between turns, and a [Signaller] publishes events from it.
//   - [Follower] shows sessions that also change outside Leat, and an [Attacher] starts conversations from them.
//
// # Order of calls
//
// The gateway calls Signals and Start once, before the first turn, then Follow in a separate goroutine. For each turn it
// calls Run, or Resume after a restart, or Observe for a run that a Follower reported. While that call runs, it may call Steer, Answer and
// Probe. After Run of a turn that was ended from outside it calls Stop. Close is last.
//
// # Invariants
//
//   - Run returns soon after its context is done, and after everything that it started has ended. If it returns nil, the turn is
//     completed, unless the agent has ended it with another outcome. If it returns an error, the turn fails.
//   - All methods of an agent may be called from several goroutines, and Run runs for several turns at the same time. The turns of one
//     conversation run one after another, except observed ones.
//   - Output after the end of the turn is dropped and counted. Methods of the Emitter then return [ErrTurnOver].
//   - Methods of the Emitter block while the log is behind, which slows down a fast upstream. An agent doesn't need a queue.
//   - A turn without progress fails after the limit on silence. Output is progress; [Emitter.ReportProgress] is for work without output.
//   - Status, with replace and append, has the semantics of [github.com/leat-dev/leat/dialect.Segments] for every agent.
//   - Secrets are masked in logs, errors and captures, but only those of options that are marked as secret.
package agent
