// Package signals keeps the gateway's log of signals: what agents are about, their heartbeats, and what training and other
// programs tell. It is the conversation "$signals" of the journal; each signal is a record.
//
// Invariants
//
//   - The number of a signal is its record's seq, so it never falls: over restarts the log goes on, over a restore it jumps.
//   - A signal is shown only after the journal has it.
//   - At most [Cap] signals are kept, in the journal and in memory; the oldest go first.
//   - A signal about a conversation is written in a commit that fails when the conversation is gone, so that nothing of a
//     deleted one is written after its delete. The delete itself takes the data out of the records that are there.
//   - One [Log] writes the log. Who may see a signal is not its business: whoever shows one asks.
package signals
