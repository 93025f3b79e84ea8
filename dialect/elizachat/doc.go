// Package elizachat decodes the chat stream of an Eliza server: the server-sent events of POST /api/conversations/{id}/messages/stream, in
// every known version of the server. The servers have no specification, so the streams in testdata are the reference.
//
//	token    the text, by deltas or as a whole; the oldest servers leave out the type
//	status   the phase of the turn
//	done     the final text, the model's thought, the history of callbacks, the usage, and the end of the turn
//	error    the failure of the turn
//
// Other types, such as the tool frames of newer servers, are counted as unknown.
//
// Invariants
//
//   - fullText has priority: if a token has one, it is the whole text, whatever was shown before. A token without it, as in the protocol
//     delta-v2, is appended. Texts are never compared to guess which of the two is meant.
//   - A non-empty full text of done replaces the streamed text.
//   - The callback history of done becomes the history of a status without a text. The stream doesn't mark which snapshots were
//     callbacks, and the decoder doesn't guess.
//   - done and error end the turn. A done with a failureKind is a failure, even if it has a text.
package elizachat
