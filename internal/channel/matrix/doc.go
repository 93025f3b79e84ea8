// Package matrix is a channel for bots on Matrix homeservers (spec.matrix.org, client-server API). Each room is a chat, and so is each
// thread in it. Answers are sent when they are complete, or, if streaming is on, as one event that is edited while it grows (MSC4357).
//
// Invariants
//
//   - Each request that sends an event has a transaction id: that of a new event derives from the key of its message, that of an edit from
//     the message and its revision. A request without an answer is repeated with the same id, so it takes effect once.
//   - An edit whose outcome is unknown is repeated before the next one, so a late one can't overwrite a newer text.
//   - Edits are related to the original event, contain the whole text, and have no mentions.
//   - A message of a person is stored before the position behind it is. That position is in the account data of the bot on its homeserver,
//     so a restart continues there.
//   - Encrypted rooms are not read. Each of them gets one message about that.
//
// # Edits
//
// An edit is a new event in the room. It contains the new text twice: as a fallback for clients that don't know edits, and as the new
// content. Together with HTML that makes four copies, so a message may have about a quarter of the limit of an event. Every edit stays
// in the room's history, so live updates are slower than on other platforms.
//
// Clients show the edit with the newest time of the server. Two edits in flight could arrive in either order, so the next one is sent only
// when the outcome of the one before is known.
//
// A redaction of the original event doesn't remove its edits, and each of them contains the text. So the edits are listed and redacted
// first. That costs a request for each, which is another reason for few edits.
//
// # Rates
//
// Synapse by default allows one event every five seconds for each user in all rooms together, after a burst of ten. Dendrite doesn't limit
// events. The bot begins with the faster pace, and slows down for some minutes after the homeserver has refused a request.
//
// # Position
//
// The homeserver sends what has changed since a token. The token is stored in the account data on the homeserver itself, so a bot that is
// moved to another machine neither repeats nor misses messages. A message that is received twice has the same id, and the inbox ignores
// the second one, so the position is stored only after new messages and every ten minutes.
//
// # Rooms
//
// The bot accepts every invitation. Joining a room of another homeserver can take minutes, so it happens apart from the sync. Messages
// that were written between the invitation and the join are answered; earlier ones are not.
//
// In a room with two members every message is for the bot. In others a message is for the bot if it mentions the bot by its id or its
// name, or replies to one of its messages. Notices are messages of bots and are never answered, so two bots can't answer each other.
//
// Encryption would need keys for each device and their verification by people. The bot has none. It says so once in each encrypted room,
// because people would otherwise wait for an answer.
package matrix
