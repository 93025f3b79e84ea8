// Package discord is a strict fake of the Discord API (discord.com/developers/docs, version 10) for tests of bots: the HTTP API and
// the gateway.
//
//	fake := discord.New(discord.Options{Token: "test"})
//	server := httptest.NewServer(fake)
//	// … a bot that uses server.URL as the address of the API …
//	fake.Say(discord.Direct("7", "Ann"), "hello")
//	messages := fake.Messages(discord.Direct("7", "Ann").Channel)
//
// The fake refuses what the real API refuses, with the same codes, and makes faults on demand ([Server.Fail], [Server.Drop]).
// Requests that the API tolerates but a bot should not make are collected by [Server.Violations]: a request during a penalty, two
// requests for one message at a time, an interaction that is not answered in time.
//
// Times are those of time.Now, so the fake can be used in a testing/synctest bubble when it is called without sockets, as an
// [http.RoundTripper] ([Server.RoundTrip]); a connection to the gateway is then a pipe. A Server is safe for concurrent use. It has
// no goroutines apart from those of connections to the gateway, which end with their connection.
//
// # Tests with the fake
//
// A test writes as a person does ([Server.Say], [Server.Invoke], [Server.Press]) and looks at the channel as a person does
// ([Server.Visible], [Server.IsTyping]). Events reach the bot once it has a session; those from before a session are lost, as with Discord,
// so a test waits for [Server.Connections] or, in a synctest bubble, for all goroutines to block.
//
// Connections fail in several ways, and a bot has to survive each of them: [Server.Drop] breaks them, [Server.CloseGateway] closes
// them with a code, [Server.AskReconnect] asks for another one, [Server.Invalidate] ends the session, and [Server.Mute] loses frames
// on a connection that stays open, which only heartbeats can find.
//
// Requests meet faults one at a time ([Server.Fail]) or at random ([Options.Chaos]). After a fault with After the message exists
// although the bot got no answer; its nonce prevents a second one.
//
// A test should end with a look at [Server.Violations]. With Discord, requests against the limits lead to a ban of the address.
//
// # Rules
//
// Requests
//
//   - The user agent has the form that the platform demands. Requests need the token of the bot, apart from those with the token of an
//     interaction. A body is JSON, or multipart with the JSON as payload_json.
//   - The limits of routes are counted for each channel, with the headers that describe them. Fifty requests a second are allowed in all,
//     those of interactions apart.
//   - A refusal with 429 has the wait as a fraction of seconds in its body, and as whole seconds in the header Retry-After. Its scope says
//     whether it holds for a bucket, for the whole bot, or for all bots in a channel.
//
// Messages
//
//   - A content has at most 2000 UTF-16 code units, and a message isn't empty. Spaces around it are removed.
//   - A nonce has at most 25 characters. A second message with an enforced nonce within three minutes is the first one.
//   - A message of Components V2 has components only: at most 40, with at most 4000 characters in all text displays. The flag can be set by
//     an edit, but not removed.
//   - Custom ids are unique in a message, and a row has at most five buttons.
//   - Mentions notify unless allowed_mentions forbids it.
//   - A message that is older than an hour can be edited three times. The real number isn't published.
//   - A reply to a deleted message is refused, unless the request allows a normal message instead.
//
// Gateway
//
//   - The version and the encoding are checked, and so are the token, the intents and the shard of identify. The codes with which a
//     connection is closed are those of the documentation.
//   - Two sessions begin at least five seconds apart; otherwise the new one is called invalid.
//   - A session without a connection can be resumed for five minutes. All events after the bot's position are sent again.
//   - A bot may send 120 frames a minute, each of at most 4096 bytes. A bot without heartbeats is disconnected.
//   - The content of messages is hidden without the privileged intent, unless the message is a direct one, mentions the bot or is its own.
//
// Interactions
//
//   - The first answer has to arrive within three seconds, and only one is accepted. The token can then be used for 15 minutes.
//   - An application has at most 100 commands, whose names have a fixed form. They can be replaced twice a minute, and 200 may be
//     created in a day. The real limits of the route aren't published.
//
// Files
//
//   - A request has at most ten files of at most 10 MiB. Their addresses expire after a day, and must not be called with the bot's token.
package discord
