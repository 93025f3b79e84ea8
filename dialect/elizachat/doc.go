// Package elizachat decodes the chat of an Eliza server: the server-sent events of
// POST /api/conversations/{id}/messages/stream, of every version that is known.
//
// Invariants
//
//   - fullText is the authority: where a token carries it, the text is that, whatever was shown before. A token without it,
//     as in the protocol delta-v2, is appended. Texts are never compared to find out which is meant.
//   - The full text of done takes the place of what was streamed, unless it is empty.
//   - The callback history of done, if there is one, is that of a status without a text. Which snapshots were callbacks the stream
//     doesn't say, and it is not guessed.
//   - done and error are the end. A done with a failureKind has failed, though it brings a text.
package elizachat
