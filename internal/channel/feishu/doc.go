// Package feishu is a channel for bots of Feishu and Lark (open.feishu.cn). Answers are cards with Markdown.
//
// Messages arrive at a webhook, encrypted and signed. If the channel streams, a growing answer is a card of CardKit whose text is
// replaced, and which is the answer at the end; tool calls are shown on another card, which is deleted then.
//
// Invariants
//
//   - A request to the webhook has no effect unless it is signed with the app's encrypt key. Only the challenge that sets up the
//     webhook isn't signed; it is encrypted, and has no effect but its answer.
//   - The webhook is confirmed when the message is stored. Otherwise the platform sends the event again.
//   - Each message is sent with a uuid that is the same if it is sent again. The platform recognises it for an hour.
//   - The operations on one card have rising sequence numbers, also after a restart: they are times since the card was created.
//   - The access token is renewed a minute before its end, and when the platform refuses it.
package feishu
