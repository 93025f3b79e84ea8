// Package gateway holds what Leat knows and does: conversations, their writers, turns, commands and recovery.
// Surfaces stand above it, and so does the host of channels (gateway/host); they see nothing of the journal.
//
// Invariants
//
//   - Commit before show: a feed gets an event only after the journal has it.
//   - One writer changes a conversation. Each change (an agent's operations, a command, a title) is a job in the writer's
//     queue. Jobs run one after another in one goroutine, and those that wait share a commit.
//   - A command runs alone, against the committed transcript; its effect and its idempotency key are one commit.
//   - Every turn that was queued or started gets exactly one end, whatever dies: by its agent, by a stop, by a limit, or
//     by recovery.
//   - An accepted stop commits the end and fences the emitter: no later text of that turn is seen.
//   - Every surface asks [Decide] before it does anything for a principal. A [Reader] asks it again when access changes, so that
//     who may not read any more is cut at once.
//   - A writer whose commit failed for good is dropped with everything in its memory. The next use reads the log again.
package gateway
