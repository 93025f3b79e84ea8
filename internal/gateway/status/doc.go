// Package status tells what the agents are about: signals of the turns that run, the state of the default agent, and how all agents
// and channels are.
//
// Invariants
//
//   - A turn gives at most one agent event a second, and one for each part that is finished; all turns together no more than
//     [Budget], so that the signals of others stay in the log.
//   - The numbers of a run's signals have no gaps: what is held back has none.
//   - Both types are told of events by the gateway ([gateway.Watcher]) and never hold a conversation up.
package status
