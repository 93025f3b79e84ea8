// Package discord is a channel for Discord bots (discord.com/developers/docs, version 10 of the API). Messages, slash commands and
// pressed buttons arrive over the gateway, a WebSocket. The growing answer is a message that is edited and becomes the answer; tool
// calls are shown on a status card, a container of Components V2, which is deleted at the end.
//
// Invariants
//
//   - The position in the gateway's events advances when an event is stored. A connection that breaks is resumed there, so no event is
//     lost while the program runs.
//   - An interaction is confirmed to the platform within 3 s, after it was stored.
//   - A message has a nonce, so a request that is repeated within a few minutes creates no second message. After that time the message is
//     looked for before it is sent again.
//   - No request is sent while a penalty of the server lasts, or when the headers said that none is left in its bucket.
//   - Mentions in the text of a message don't notify.
//
// # Gateway
//
// A connection begins with the server's hello, which names the interval of heartbeats. The bot then identifies itself, which starts a
// session, or resumes the session of an earlier connection with the number of the last event that it has handled. The server sends the
// events after that number again. It keeps a session without a connection for a few minutes; after a longer outage it calls the session
// invalid, a new one is begun, and the messages of the meantime are lost, because the gateway has no older events.
//
// Events are handled one at a time and in order. An event that can't be stored ends the connection without advancing the position, so the
// server sends it again on the next one.
//
// Sessions are a scarce resource: the platform allows about a thousand starts a day and resets the token of a bot that exceeds this. So
// the bot resumes whenever it can, waits between starts, and stops for good after a code that no repetition would change.
//
// # Limits
//
// The platform publishes no numbers for the limits of routes, and asks bots to follow the headers of its answers. A limiter does that: it
// refuses requests that the server would refuse, with the same error, because many refused requests lead to a ban of the address. The
// gaps of this package only spread the requests evenly, so that the bucket is rarely empty when the answer is complete.
//
// # Slash commands
//
// An interaction must be answered within three seconds, which is shorter than a turn. So it is confirmed with "is thinking…", and the
// reply to the command replaces that by an edit. The token that permits the edit lives for 15 minutes and is only in memory; after a
// restart the reply is a normal message. The commands are registered only if those of the application are others, because few
// registrations are allowed.
//
// # What the bot may do
//
// The link for adding the bot asks for the permissions to see channels, to write in them and in threads, to attach files, and to read the
// history, which replies need. The intent for the content of messages is privileged: without it the texts of messages in servers are empty,
// and the gateway refuses a bot that asks for it without the operator's consent in the Developer Portal.
//
// A message in a server is for the bot if it mentions the bot or replies to one of its messages. Direct messages always are.
//
// # Messages whose request got no answer
//
// A repetition with the same nonce returns the first message, but the platform remembers a nonce for a few minutes only, and a
// penalty or a restart can take longer. After two minutes, and always for the first message after a restart, the messages of the channel
// since the last known one are compared with the lost one before it is sent again. The first version of a growing text isn't stored, so
// such a message is recognized by the message to which it replies, or by its cursor.
package discord
