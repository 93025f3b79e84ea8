// Package terminal runs shell commands and reports their output while they run, as events in the JSON form of Eliza's terminal.
//
// [New] checks for a shell. [Terminal.Run] starts a command and passes its events to a callback, [Run.Done] is closed when
// nothing of the command is left, and [Run.Result] then returns the captured output. [Terminal.Close] ends all runs. A gateway
// calls [Sweep] once at its start, before it runs commands.
//
// # Invariants
//
//   - The first event of a run is start, or error if the process can't be started. The last is exit, timeout or error. It is sent when no
//     process of the run is left: the process group is killed, and on Linux also processes that left the group. They are found as
//     descendants of the command, and by a mark in their environment.
//   - A command's output is read only as fast as its events are consumed, at most 50 events of 32 KiB per second and stream. A command
//     that prints more blocks, as at a slow terminal, so memory is bounded.
//   - Output is valid UTF-8. Characters are never split between events, and invalid bytes become U+FFFD.
//   - A command gets a fixed list of environment variables and none of the gateway's secrets. Its standard input is empty.
//   - If the gateway is killed, its commands keep running until the next gateway with the same data folder calls Sweep. That works on
//     Linux only.
package terminal
