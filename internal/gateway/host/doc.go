// Package host runs installed plugins: agents, which join the gateway's roster, and channels, which connect chats of other services.
//
// The app calls [Host.Resume] for each installed plugin, and [Host.Start] when the gateway accepts commands: channels run only from then
// on. The plugin service installs and removes plugins meanwhile, with Configure, Try, Run and Stop. [Host.Close] ends the channels.
//
// A channel's process receives the events of its chats' conversations in batches, and sends the commands of the people in the chats.
// docs/plugins.md specifies the lines of the protocol.
//
// Invariants
//
//   - Each chat has one conversation. Its owner is the chat itself, in a tenant of the channel, so a channel can't reach any other
//     conversation.
//   - A chat has at most one batch in flight. The channel asks for the next one, and commits in between are merged.
//   - The position and the state that a channel stores for a chat are durable before the channel gets its confirmation, and are
//     deleted with the conversation. A new process resumes at the stored position.
//   - A command is executed once per id, so a channel can repeat it until it is confirmed.
package host
