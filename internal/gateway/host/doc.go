// Package host runs the plugins that are installed: agents among the gateway's agents, channels beside them.
//
// A channel is handed what is committed in the conversations of its chats, and brings what people say in them; docs/plugins.md
// specifies its lines.
//
// Invariants
//
//   - Each chat has a conversation of its own, whose owner is the chat itself, in a tenant that is the channel's: no channel sees
//     anything else.
//   - A chat is given one batch at a time, and the next when the channel asks for it; what comes meanwhile is merged.
//   - The position and the state that a channel keeps of a chat are durable when it is told so, and go with the conversation. A
//     process begins at the position that was kept last.
//   - What people say is taken once by its id, however often it is brought.
package host
