// Package telegram is a channel for Telegram bots (core.telegram.org/bots/api, version 10.3). In private chats a growing answer
// is shown as a draft, in groups as a message that is edited. Tool calls are shown on a status card, another message. At the end
// the answer is sent as normal messages, and the others are deleted.
//
// Invariants
//
//   - One request for a chat is in flight at a time, none while a penalty of the server lasts, and each shows the newest state.
//   - The Bot API has no idempotency keys. So the intention to send a message is stored before the request, and its number after it. A
//     message of the final text with an unknown outcome is not sent again; the delivery then ends with channel.ErrUnknownOutcome.
//   - The messages that show the running turn are deleted when the final text was sent, also those with an unknown outcome. If the final
//     text can't be sent, they stay.
//   - The final text is split at ends of blocks; formatting is sent as entities, which can't be unbalanced.
//
// # Drafts
//
// A draft is an animated text at the end of a private chat, which isn't a message: it isn't stored, doesn't notify, and disappears about
// 30 s after its last update or when the bot sends a message. So it is repeated while a tool runs, and the answer is always a new message.
// To edit a message as well would show the answer twice. Each turn has another draft, because two turns with one draft would
// overwrite each other's text. Its button Stop arrives as an update that names the draft only.
//
// Drafts are rich messages, in HTML, if the server knows them: they have tables and headings and room for eight times the text. A refusal
// makes the rest of the delivery use plain drafts; the first "method not found" makes all of them plain.
//
// Groups have no drafts. An older server refuses them, and the first refusal makes the rest of the delivery use edits.
//
// # Limits
//
// The limits of the Bot API are not published and change. The gaps of this package are those that other bots are known to pass with. Edits
// count as messages. A refusal says how many whole seconds to wait, in the body and not in a header.
//
// A message may have 4096 characters after its entities were parsed. They are counted as UTF-16 code units here, the unit of the offsets of
// entities, because that count is never smaller than that of the server.
//
// # Messages whose request got no answer
//
// There is neither a key for a repetition nor a method that reads the history. For a status message whose creation got no answer, the
// numbers between the messages before and after it are tried: the Bot API edits only messages of the bot itself, so an edit that succeeds
// has found it. A message of the answer is not looked for, because the edit would destroy it.
//
// # Receiving
//
// The bot polls with an offset behind the last update that was stored. The server repeats the others, so none is lost, and the inbox
// ignores those that arrive twice. With a webhook the server calls the gateway, with a secret that derives from the token. The two
// exclude each other, so a poll that finds a webhook of an earlier configuration removes it.
//
// Files that a person sends as one message arrive as several, with the id of an album. Those in one page of updates become one
// message again.
//
// In groups a bot sees only commands, mentions and replies to its messages, unless its privacy mode was switched off at @BotFather.
package telegram
