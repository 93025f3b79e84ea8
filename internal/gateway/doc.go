// Package gateway holds what Leat knows and does: conversations, their owners, turns, commands and recovery.
// Surfaces stand above it, and so does the host of channels (gateway/host); they see nothing of the journal.
//
// Invariants
//
//   - Commit before show: a feed gets an event only after the journal has it.
//   - One owner writes a conversation. All that changes it (an agent's words, a command, a title) is a job of the owner's
//     queue; jobs run one after another in one goroutine, and what waits goes into one commit.
//   - A command runs alone, against the committed transcript; its effect and its idempotency key are one commit.
//   - Every turn that was queued or started gets exactly one end, whatever dies: by its agent, by a stop, by a limit, or
//     by recovery.
//   - An accepted stop commits the end and fences the emitter: no later text of that turn is seen.
//   - Every surface asks [Decide] before it does anything for a principal. A [Reader] asks it again when access changes, so that
//     who may not read any more is cut at once.
//   - An owner whose commit failed for good is dropped with all that it held in memory; the next use reads the log anew.
package gateway
