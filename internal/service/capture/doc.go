// Package capture stores the raw bytes that turns exchange with their upstreams (agents and model providers) for a limited
// time, so that an operator can examine afterwards why an answer was garbled or a turn failed. The bytes are kept in a ring of
// segment files; the oldest segment is deleted first.
//
// # Order of calls
//
// [Open] starts the log's goroutine, which owns the files. For each turn the gateway calls [Log.Turn], then [Turn.SetDialect]
// and [Turn.Raw] as bytes pass, [Turn.Failed] if the turn fails, and [Turn.Close]. [Log.Read] returns the records of a turn,
// [Log.Forget] removes those of a conversation, and [Log.Close] writes what is queued. A nil Log or Turn does nothing, so
// callers need no check if captures are disabled.
//
// # Invariants
//
//   - A turn is never delayed, and disk errors never reach it. Its bytes are queued in memory; if the queue or the disk is full,
//     they are dropped, and the number of lost bytes is recorded in their place.
//   - The files take at most Options.Size in total and hold nothing older than Options.Retention, give or take one segment.
//   - Secrets are masked before they are written: tokens with a recognizable form, and the values that the agent's configuration
//     declares secret, even if one spans several pieces of a body.
//   - After Forget returns, no file contains data of the conversation, and no later data of its turns is written.
//   - A crash loses the queue, which has the records of the last 100 ms, and the last incomplete record. Everything before it can
//     still be read.
package capture
