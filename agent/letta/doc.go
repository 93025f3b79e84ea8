// Package letta is an agent that runs on a Letta server: on the V1 REST API, over server-sent events, or on the App Server of
// Letta Code, over a WebSocket. docs/letta.md describes it for those who set it up.
//
// Invariants
//
//   - A conversation here is a conversation there. It is made when it is first spoken in, or named by a template, and kept
//     with the session, so that no restart loses what the agent remembers of it.
//   - Leat holds the connection upstream for as long as the turn runs: who looks at it, and who leaves, changes nothing.
//   - What is sent is noted durably before it is sent, and nothing is sent twice after a crash, unless the server tells
//     repeats: V1 does, in background, by the otid.
//   - A background run of V1 is taken up again after its last chunk, by run and seq_id, as often as its stream breaks, and
//     after a restart of Leat. A gap in what then comes ends the turn as interrupted: a hole is worse than an end.
//   - The App Server has no cursor, and cancels a turn when its last viewer leaves. After a lost connection what it remembers
//     fills in the end of what was shown; where another viewer kept the turn alive it goes on, elsewhere it ends as
//     interrupted.
//   - A turn that waits for a person asks once, whatever restarts, and takes the answer from whoever gives it, here or in
//     another program at the same server.
//   - A turn that was stopped is aborted upstream; one that is only left, for a restart, is not. A message that the App Server has not
//     taken up is taken out of its queue in place of that: what runs there is another turn.
//   - A message in that queue keeps its turn alive, shown as waiting, as long as the server does anything, or for ten minutes.
//   - V1 announces nothing. One poller finds what other clients do, with one request at a time; Leat's own messages are known by their
//     otid, and its own runs by the names that their streams give.
//   - Neither logs nor errors hold the token.
package letta
