// Package gateway contains conversations and their turns: commands, writers, runs of agents, recovery after a restart, and access. The
// HTTP surfaces, the host of channels and the other packages below gateway are built on it and never use the journal directly.
//
// A program makes a [Gateway] with [New], calls [Gateway.Start] once, and ends it with [Gateway.Shutdown]. In between, surfaces call
// [Gateway.Create] and [Gateway.Do] to change conversations, and [Gateway.Feed] to read them.
//
// # The path of an answer
//
// The files of the package are in layers; a reader who follows an answer meets them in this order:
//
//   - run.go, sink.go: a run calls the agent of one turn, and its sink receives what the agent's emitter sends. A run knows the
//     conversation only through [turnWriter], which could be a connection to another process.
//   - turnlink.go, turn.go, turns.go: the turn on the writer's side. It maps operations to events.
//   - queue.go, writer.go: the queue of jobs and the writer, the only place that changes the conversation.
//   - tx.go, commit.go: what the jobs of one commit add, and the commit itself: journal first, then the feed, then everything else that
//     has to know.
//   - reader.go: a feed as one principal may read it.
//
// core.go has what all conversations share, and writers.go the table of the writers in memory. Commands begin in do.go.
//
// # Invariants
//
//   - Commit before show: a feed gets an event only after the journal has stored it.
//   - Only its writer changes a conversation. Each change (operations of an agent, a command, a title) is a job in the writer's
//     queue. Jobs run one after another, and one goroutine at a time is the writer: one that exists while jobs wait, or, for text that
//     finds the queue empty, the agent's until the journal has the commit, and then the journal's. Jobs that wait at the same time
//     share a commit, except commands.
//   - A command runs alone, against the committed transcript. Its effect and its idempotency key are one commit.
//   - Every turn that was queued or started gets exactly one end, whatever crashes: from its agent, a stop, a limit, or recovery.
//   - A stop commits the end and fences the emitter, so that no reader sees later text of that turn.
//   - Every surface calls [Decide] before it does anything for a principal. A [Reader] repeats the decision when access changes, so a
//     principal that loses access is disconnected at once.
//   - A writer whose commit has failed is dropped with its memory. The next use reads the log again.
//
// Methods of a Gateway and of its parts may be called by several goroutines, unless their comments say otherwise.
package gateway
