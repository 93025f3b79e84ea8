// Package signals stores the gateway-wide log of signals: status events of agents, their heartbeats, and events that training
// jobs and other programs publish. The log is the conversation "$signals" of the journal, with one record for each signal.
//
// Call [New], then [Log.Open], then [Log.Run] in a goroutine. Requests publish with [Log.Publish], which returns after the
// commit. Turns use [Log.Offer], which never blocks but may drop signals. A reader takes the channel of [Log.Changed], calls
// [Log.After] with the last number that it has seen, and waits.
//
// # Invariants
//
//   - The number of a signal is the seq of its record. It only ascends, also across restarts. A restore of a backup may skip numbers.
//   - A signal is visible only after the journal has stored it.
//   - At most [Cap] signals are kept, in the journal and in memory. The oldest are removed first.
//   - A signal about a conversation is written in a commit that fails if the conversation was deleted, so nothing about it is written
//     afterwards. The delete itself blanks the existing records.
//   - Only one [Log] may write the log of a journal. The package doesn't check access: the caller decides who may see a signal.
package signals
