// Package openclaw is the agent kind for OpenClaw gateways. It keeps one WebSocket connection to a gateway, as one of the gateway's
// operators, and runs all conversations over it.
//
// A turn is one run of the gateway, or several: a message that is steered into a turn has a run of its own, and a gateway that
// restarts continues an interrupted run as a new one. The package github.com/leat-dev/leat/dialect/openclaw decodes frames. This package
// owns the connection and the requests, and assigns frames to turns.
//
// # Order of a turn
//
//  1. Run waits for a connection, stores the session's key and registers the turn. A session runs one turn of Leat at a time.
//  2. send makes the run's id durable, calls chat.send and waits for the acknowledgement.
//  3. The connection's goroutine routes frames into the turn's queue. The turn's own goroutine takes them out and decodes them.
//  4. After a reconnect, a gap in the frame numbers or a silence, lookUp reads the session's history, adds what is missing and decides
//     for each run whether it runs, has ended, continues as another run, or is lost.
//  5. Before the end of a run is shown, its history is read once more (finishRun), because only histories have files and some texts.
//
// Follow watches sessions for activity that did not start with a turn of Leat. It reads histories (gatherer), records the entries that are
// new, and the gateway of Leat calls Observe for each run that is still in progress.
//
// # Invariants
//
//   - A run's id consists of the ids of its turn and its message. It is durable before chat.send is called, so that a repeated call
//     addresses the same run. A message is only sent again if the gateway is certain to recognize it, or certain not to have it.
//   - A turn never shows a run that answers another client. The session's history decides which run answers a message; the run that
//     currently occupies the session may be anybody's.
//   - Follow reports from histories only. Frames only tell it when to read. Each message and run has the same key however it
//     is found, so that Leat records it once.
//   - Each commit stores the decoder's state together with the events that it decoded. After a crash, Resume continues where the log ends.
//   - The outcome of a run is never guessed. A run that can't be followed is looked up in the history. If it doesn't appear there within
//     a grace period, it ends as interrupted.
//   - A history only adds to what was streamed. It never shortens, replaces or repeats it.
//   - The goroutine that reads the connection never waits for a turn.
//   - Neither logs, errors nor captures contain the token or the device's key.
package openclaw
