// Package web is a channel for people on web pages: a WebSocket that sends an answer while it is written, and a widget that a page
// embeds with one script element. docs/channels/web.md describes the frames.
//
// A visitor is known by a session token, which the first connection gets. The id of the chat is derived from the token, and the token
// can't be derived from the id. So nothing about sessions is stored, and only the visitor can continue a chat.
//
// The frames of a chat are entries of its room, numbered from the room's creation. SendStream adds entries without waiting; each
// connection reads them at its own pace:
//
//	pipeline → SendStream, Send → room → one reader for each connection → frames
//
// Invariants
//
//   - A frame reaches only the connections of its chat. A chat without connections keeps the newest frames in its room, up to a limit.
//   - A connection that resumes after a number gets every entry behind it once. If the room no longer has them, the connection gets a
//     history: the messages of the conversation, and the text of the running turn so far.
//   - Each growth of a text is one frame. Frames are merged only for a reader that is far behind.
//   - A slow reader delays neither the agent nor another reader. It costs one number, and its connection is closed when a write takes
//     too long.
//   - A number is never used twice, also not after a restart, so a stale number leads to a history and not to the wrong frames.
package web
