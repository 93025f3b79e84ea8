// Package soak runs a real gateway for hours with a hundred concurrent streams. It checks every answer, and measures the resources of the
// gateway's process.
//
// Invariants that the test checks:
//
//   - The text that a reader has received is always a prefix of the agent's text, and never gets shorter.
//   - Each turn ends exactly once, soon after its agent's stream. It is completed with the whole text. It fails only if its agent broke
//     off, and is interrupted only if the gateway was restarted.
//   - Memory, goroutines, file descriptors and the write-ahead log stay flat: after a process has warmed up (options.warm), none of them
//     grows by more than five percent until the process ends, or from one process to the next.
//
// Meanwhile readers are disconnected at random, agents break off, conversations are truncated and deleted, and the gateway is killed and
// restarted. A seed reproduces the random choices, but not their timing.
//
// TestSoak runs for the duration in LEAT_SOAK; make soak sets it.
package soak
