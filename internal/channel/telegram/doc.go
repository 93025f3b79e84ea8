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
package telegram
