// Package openclaw is an agent that lives in an OpenClaw gateway: one WebSocket connection, as one of its operators, on which
// all conversations run beside each other.
//
// A turn is one run of the gateway, or several: a message that was steered in has a run of its own, and a gateway that was
// killed goes on with a new one. What frames mean is known to [github.com/leat-dev/leat/dialect/openclaw]; here are the
// connection, what is asked over it, and which frames belong to which turn.
//
// Invariants
//
//   - A run's id consists of the ids of its turn and its message. It is durable before chat.send is called, so that a repeated call is
//     the same run. Nothing is sent twice unless it is certain that the gateway would notice.
//   - A turn shows no run that answers another client. Which run answers a message is read from the session's history, never
//     guessed from which one has the session.
//   - What happens in a session outside Leat's turns is reported by Follow, from histories: frames only say that there is something
//     to read. Each message and each run has one key, whichever way it is found, so that the gateway records it once.
//   - Each commit holds the decoder's state together with what it decoded: after a kill, Resume goes on where the log ends.
//   - A terminal is never guessed. A run that can't be followed is looked up in the session's history: it goes on, it has
//     ended there, another run goes on with it, or it is lost and ends as interrupted.
//   - History only adds. It never shortens, replaces or repeats what was streamed.
//   - The goroutine that reads the connection never waits for a turn.
//   - Neither logs, errors nor recordings hold the token or the device's key.
package openclaw
