// Package llmtest has servers that imitate the APIs of model providers, for tests. They refuse the requests
// that the real APIs refuse, answer with a script and fail on demand. They are written from the APIs'
// documentation and recordings, and don't use package llm, so that an error there can't hide in both.
//
// A test starts a server with [New] (on a socket) or [NewPiped] (in memory, for tests with a fake clock), sets
// the answer with Server.Say or Server.Reply and the faults of the next calls with Server.Fail, runs the agent and inspects
// Server.Calls.
//
// Invariants
//
//   - Every request is checked, also one that then gets a fault: the tests of faults find invalid requests as
//     well.
//   - The same calls with the same script and faults get the same bytes, apart from the splitting by the
//     network.
//   - A server answers any number of calls at the same time. Faults are used up in the order in which the calls
//     arrive, so a test with concurrent calls can't know which call gets a fault.
package llmtest
