// Package llmtest has servers that imitate the APIs of model providers, for tests. They refuse the requests that the real APIs refuse, answer
// with a script and fail on demand. They are written from the APIs' documentation and recordings, and don't use package llm, so that an
// error there can't hide in both.
//
// A test starts a server with [New] (on a socket) or [NewPiped] (in memory, for tests with a fake clock), sets the answer with
// Server.Say and the faults of the next calls with Server.Fail, runs the agent and inspects Server.Calls.
package llmtest
