// Package openclaw decodes the frames that an OpenClaw gateway sends over one client connection, in protocol 3 (2026.2) and
// protocol 4 (2026.9): JSON over a WebSocket, one frame a line.
//
// The client passes every frame to Decode in the order of arrival: events, the response to connect (which has the protocol), responses to
// chat.send (which name a run) and, after a loss, responses to chat.history. After each frame it stores the state with the events.
//
// # Invariants
//
//   - An event's turn is the run id of its frame. A run has one assistant message, whose key is the run id. Its text segments, reasoning,
//     tools and files are the message's parts, in the order in which they appeared.
//   - A run has one [event.TurnEnd], for the first of the chat frames final, aborted and error. Lifecycle frames end nothing.
//     Frames of a run after its end are dropped.
//   - Text comes from agent frames, each of which is a snapshot of a whole segment; chat frames have statuses and ends. A final
//     frame only adds what is missing. It never shortens or overwrites visible text.
//   - Protocol 4 names segments, and the gateway itself retracts and replaces them. In protocol 3, and in frames without a name,
//     a new segment begins with a text that doesn't continue the previous one or that equals its own delta: the model's next message.
//   - Control syntax is never visible, whole or in part. In protocol 3 a complete MEDIA: line becomes a file's part, and directives and
//     NO_REPLY are removed. In protocol 4 the gateway does this, and its text is shown unchanged.
//   - A file is shown between the texts around it, in a separate part. In protocol 4 only the end of the run's lifecycle shows
//     the place: the file is deferred until then, and the text after it moves behind it.
//   - A connection receives the runs of all sessions. Only the first run's session, and sessions that it spawned, are decoded, or
//     those that the client uses (SawRequest).
//   - The state contains lengths, checksums and buffered text, never whole texts.
//   - A response to chat.history adds what is missing from the open runs: the rest of a text, and texts and tools after the last
//     visible one. It retracts nothing and ends no run.
//
// The owner of the connection handles its requests, lost frames (the outer seq), and runs whose end only a history shows. The seq of
// a run serves to detect repeated agent frames; it has gaps, and chat frames are numbered separately.
//
// Every frame repeats the text of its segment, so decoding a segment takes time quadratic in its length. Gateways of protocol 4 send
// fewer frames for that reason.
package openclaw
