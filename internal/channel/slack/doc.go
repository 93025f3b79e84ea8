// Package slack is a channel for Slack apps (docs.slack.dev). It receives by Socket Mode, or by requests of the Events API. A growing
// answer is a native stream where Slack allows one: in threads. Elsewhere it is a message that is edited. Both become the answer in
// place. Tool calls are shown as the tasks of another stream, which is deleted at the end.
//
// Invariants
//
//   - A thread is a separate chat. A message at the top of a channel begins a thread; direct messages are a chat without one.
//   - An envelope or a request of Slack is confirmed when the inbox has stored its message. Repetitions have the same id.
//   - Slack has no idempotency keys. So every message has its key as metadata, and if the outcome of a request is unknown, the chat is
//     searched for the key before the request is repeated. A stream has no metadata while it runs; the one that the delivery doesn't
//     know is the lost one.
//   - Only text that can't change any more is appended to a stream. If the text changes before that nevertheless, or the stream ends
//     early, the message is completed by an edit.
//   - No method is called during a penalty for it. The limits of methods count for the whole workspace, those of messages for a channel.
//   - The token is sent to the API and to Slack's own hosts only, and never in an address.
//
// # Native streams
//
// A stream can only grow: what was appended can't be changed. So a text is appended up to the point at which later text can't change how
// it is rendered, and only the part that two successive versions have in common. If the answer turns out not to begin with what was
// appended, the stream is ended and its message edited.
//
// Slack ends a stream about five minutes after its start, also while it is being appended to. This isn't documented; many users of the
// official libraries report it. The next request then gets message_not_in_streaming_state, and the message is edited from then on.
//
// Channels need the recipient of a stream, and direct messages need a thread. Elsewhere, and if the app lacks the feature, an answer is a
// message that is edited from the beginning.
//
// # Messages whose request got no answer
//
// Slack has no idempotency keys. Each message carries its key as metadata instead, and a chat reads its history before it repeats a
// request. A stream gets metadata only when it ends, so one that is open is recognized by exclusion: it is a message of the bot that
// has no key and isn't in the state of the delivery. A search begins at the newest message that the delivery knows, so it finds no file or
// stream of an earlier turn. Without the scopes to read the history, the outcome stays unknown, and nothing is
// sent twice.
//
// # Limits
//
// Slack limits each method by a tier, which is a number of requests a minute for the whole workspace, and messages to about one a second
// in each channel. A penalty is for one method. The limits of this package are a little lower, because a request that is refused costs a
// wait of many seconds, and one that is delayed costs a fraction of one. A fifth of the edits is for answers, so they don't wait for the
// updates of running turns in all other chats.
//
// # Receiving
//
// With an app-level token the bot opens a connection of Socket Mode. Its address is a ticket that works once, so it must not appear
// in logs. Each envelope is acknowledged after its message was stored; Slack waits three seconds, and otherwise delivers it again,
// also on another connection. With a signing secret Slack sends requests instead, which are answered after the message was stored.
//
// A mention in a channel brings two events with the same message. The second one is recognized by the id of the message, which the inbox
// takes once. Events contain ids of people only; names are looked up, and a message is passed on without a name if that takes too long.
//
// A message at the top of a channel begins a thread with its answer. The thread is the chat, so each one is a separate conversation.
package slack
