// Package eliza is the kind of agent that is served by an Eliza server. Each conversation has a counterpart on the server; a turn posts its
// message there and decodes the chat's stream as the answer. The server's WebSocket additionally reports what its agent does outside of
// turns; these events are passed on as signals.
//
// A turn creates the counterpart if none is stored, posts the message, decodes the stream and completes its last frame with the
// callback history.
//
// Invariants
//
//   - The ids of the counterpart are stored with the conversation. If the server has deleted it, one new counterpart is created; a turn
//     whose new counterpart is gone too fails.
//   - A message's id is the turn's key, by which the server recognizes a repeated request.
//   - The callback history is read from the server's list of messages, because the stream doesn't contain it.
//   - One socket serves all turns. It is reconnected with the back-off of Eliza's own clients until Close, and resumes after the last
//     event that was received.
package eliza
