// Package status reports the status of agents: signals of running turns, the state of the default agent, and the health of all agents and
// channels.
//
// Invariants
//
//   - A turn gives at most one agent event a second, and one for each part that is finished; all turns together no more than
//     [Budget], so that the signals of others stay in the log.
//   - The numbers of a run's signals have no gaps: what is held back has none.
//   - Both types are told of events by the gateway ([gateway.Watcher]) and never hold a conversation up.
package status
