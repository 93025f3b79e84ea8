// Package letta runs an agent of a Letta server. It supports two servers: the V1 REST API, which streams server-sent events, and the
// App Server of Letta Code, which streams frames over a WebSocket. docs/letta.md is the guide for operators.
//
// # Order of calls
//
// [Kind] parses the settings and returns a [restAgent] for http and https, or a [socketAgent] for ws and wss. The gateway then calls
// Start once, Follow for as long as the agent is configured, and Run for each turn. After a restart it calls Resume for each turn that
// was running. If Follow has recorded a running turn of another client, the gateway calls Observe to show it. Close comes last.
//
// A turn of V1 is a sequence of HTTP requests: the first sends the message, the next ones send approvals or resume a broken stream
// (runStreams). A turn of the App Server has one connection at a time; after it broke, runToEnd reconnects and repairs the answer from
// the server's history. Both kinds decode with the same [letta.Decoder].
//
// Files that end in _rest belong to V1, those that end in _socket to the App Server; the others belong to both.
//
// # Invariants
//
//   - Each conversation of Leat is one conversation of the Letta server. It is created with the first message, or named by a template
//     in the settings. Its id is stored as the session before the message is sent, so the agent keeps its memory across restarts.
//   - The connection to the server stays open while the turn runs, however many viewers of Leat come and leave.
//   - Each request that changes something is recorded durably before it is sent. After a crash it is sent again only if the server
//     recognizes repetitions: V1 does so for background runs, by the otid of the message.
//   - A background run of V1 is resumed after its last chunk, by run id and seq_id, whenever its stream breaks and after a restart of
//     Leat. If the server has dropped chunks in between, the turn ends as interrupted: readers must never see text with a hole.
//   - The App Server has no cursor, and it cancels a turn when its last viewer disconnects. After a lost connection the server's
//     history supplies the missing end of the answer. If another viewer has kept the turn running it continues; if not, it ends as
//     interrupted.
//   - A request for approval is shown once, also after restarts. The first answer counts, from Leat or from another client of the
//     same server.
//   - A turn that a user stops is aborted at the server; a turn that is only left for a restart is not. If the App Server still has
//     the turn's message in its queue, the message is removed from the queue instead, because the turn that runs there is another one.
//   - While a message waits in that queue its turn stays alive, with the phase "waiting", until the server has sent nothing for
//     ten minutes (times.queueLimit).
//   - V1 has no notifications. One poller finds what other clients do, with one request at a time. It recognizes Leat's own messages
//     by their otid, and Leat's own runs by the run ids in their streams.
//   - The token appears neither in logs nor in errors.
package letta
