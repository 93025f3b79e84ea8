// Package soak keeps a real gateway busy for hours, with a hundred streams at once, and watches what it uses and what it says.
//
// What has to hold:
//
//   - What a reader sees of an answer is at every moment the beginning of what the agent says, and never becomes less.
//   - Each turn ends once, and soon after its agent does. It is completed with the whole text; it fails only if its agent broke off,
//     and is interrupted only if the gateway was restarted.
//   - Memory, goroutines, descriptors and the write-ahead log are flat: once a process has run for a while (Options.Warm), none of them
//     grows by more than five percent until it ends, nor from one process to the next.
//
// Readers lose their connections at random, agents break off, conversations are truncated and deleted, and the gateway is killed and
// restarted. A seed repeats the choices, but not the times at which they meet.
//
// TestSoak runs for the duration in LEAT_SOAK; make soak sets it.
package soak
