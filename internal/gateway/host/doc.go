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
//     conversation. An operator can attach a chat to another one, which the chat then uses with the rights of that one's owner.
//   - A chat has at most one batch in flight. The channel asks for the next one, and commits in between are merged.
//   - The position and the state that a channel stores for a chat are durable before the channel gets its confirmation, and are
//     deleted with the conversation. A new process resumes at the stored position.
//   - A command is executed once per id and conversation, so a channel can repeat it until it is confirmed.
//   - The stored binding of a chat changes while its lock is held, and a session learns of each change after it is durable. A session that
//     begins meanwhile reads the bindings after it was published, so it misses none.
package host
