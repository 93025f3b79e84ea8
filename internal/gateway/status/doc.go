// Package status reports the status of agents and channels to operators: signals of running turns ([Turns]), the state of the default
// agent ([Agent]), and the health of every agent and channel ([Overview]).
//
// The app registers the three types as watchers of the gateway, so that each sees every committed event. An Overview also has to be
// initialized: set its fields, call Recall with the stored signals and Resume for each open turn, then Run until the gateway ends.
// [Overview.Snapshot] serves the operator's page, and [Overview.Collect] the metrics.
//
// Invariants
//
//   - A turn publishes at most one progress event a second, plus one for each part that ends. All turns together stay within
//     the budget, so that they don't push the signals of others out of the log.
//   - The sequence numbers of a run's signals have no gaps: a signal that exceeds the budget is dropped and gets no number.
//   - The watcher methods run on the goroutine that commits a conversation, so they only take short locks and never block.
package status
