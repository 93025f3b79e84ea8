// Package openclaw decodes what an OpenClaw gateway sends to one client connection, in protocol 3 (2026.2) and
// protocol 4 (2026.9): WebSocket frames of JSON, one a line.
//
// Invariants
//
//   - An operation's turn is the run id of its frame. A run has one assistant message, whose key is the run id; its text
//     segments, reasoning, tools and media are the message's parts, in the order in which they appeared.
//   - A run is one [event.TurnEnd]: the first of the chat frames final, aborted and error. Lifecycle frames end nothing.
//     What comes for a run after its end is dropped.
//   - Text is taken from agent frames, where each segment is a snapshot that repeats all of its text; chat frames give
//     status and ends. A final only adds what is missing. It never shortens or overwrites what was shown.
//   - Protocol 4 names segments; the gateway itself retracts and replaces them. On protocol 3, and wherever a frame names
//     none, a segment ends where a text does not go on from the one before, or is its own delta: the model's next message.
//   - Control syntax is never visible, whole or in part: on protocol 3 a MEDIA: line becomes a media part once it is
//     whole, and directives and NO_REPLY vanish; on protocol 4 the gateway does the same, and its text is taken as it is.
//   - A file stands between the texts that it stood between, in parts of their own. On protocol 4 only the end of the run's lifecycle
//     tells the place: the file waits for it, and what was streamed behind it moves.
//   - A connection sees the runs of all sessions. The first run's session, and those that it spawned, are decoded.
//   - The state holds lengths, checksums and what is held back, never whole texts.
//   - A response to chat.history adds what the open runs have in it and was not seen: the rest of a text, whole texts and
//     tools behind the last that was seen. It takes nothing back, and tells no end.
//
// Left to whoever owns the connection: requests and their other responses, loss (the outer seq of frames), and whose end a
// history tells. The run seq only tells repeats of agent frames; it has gaps, and chat frames count by themselves.
//
// Every frame repeats its segment's text, so that decoding a segment takes time quadratic in its length; the gateway of
// protocol 4 paces its frames for that reason.
package openclaw
