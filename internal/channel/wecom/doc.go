// Package wecom is a channel for intelligent bots of WeCom (developer.work.weixin.qq.com, document 101031). Messages arrive over a
// WebSocket, and answers are sent over it.
//
// An answer to a message of a person is a stream message, whose text can be replaced for six minutes. If the channel streams, the text
// grows in it, and below it are the tool calls while the turn runs. Everything else is sent as messages that never change: further parts
// of a long answer, what is written after the six minutes, and answers to nothing.
//
// Invariants
//
//   - Each message of a person is answered with one stream, whose id depends on that message alone. So a repeated frame changes nothing.
//   - The stream is finished before the platform ends it, with the text that it shows then.
//   - What is needed to continue a stream is stored with the delivery before its first frame, and again before the frame with the answer.
//     So a restart leaves no stream that seems to run, and none that may show the answer is changed.
//   - Frames are read while messages are stored, so a slow store delays no acknowledgement.
//   - A frame for a request is sent when the one before was acknowledged.
//   - The platform has no idempotency keys for other messages. One with an unknown outcome is not sent again.
//   - A connection that was displaced by another one with the same bot is not restored for some minutes: the two would displace each
//     other for as long as both run.
package wecom
