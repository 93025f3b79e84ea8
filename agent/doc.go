// Package agent defines the contract between the gateway and the agents that answer turns.
//
// A Go program implements [Agent]: the gateway calls Run for each turn, and Run writes the answer to an [Emitter]. An agent may implement
// optional interfaces as well, which the gateway finds with type assertions: [Resumer] to survive restarts, [Steerer] and [Answerer] to
// receive messages and answers during a turn, [Checker] and [Prober] to report on its upstream, [Follower] and [Attacher] to show sessions
// that change outside Leat, [Keeper] for work between turns, [Stopper] to clean up after a stop, and [Pusher] for turns that another
// program answers. Agents that read an upstream's stream in a known format use [NewStream].
//
// A [Kind] makes agents from a [Spec], the written form in the configuration. [Kinds] checks specs, makes agents, and masks secrets.
//
// Invariants
//
//   - Run returns when its turn is over. A nil error completes the turn unless the agent ended it itself; an error fails it.
//   - When the context is done, output that is emitted later is dropped.
//   - Methods of the Emitter block while the log is behind, which slows down a fast upstream. They fail only when the turn is over.
//   - Status, replacement and append have the semantics of [github.com/leat-dev/leat/dialect.Segments] for every kind of agent.
//   - The order of calls is Signals, Start, Follow; then Run or Resume for each turn, with Steer, Answer and Probe while it runs; Stop
//     after Run of a turn that was ended from outside; and Close.
package agent
