// Package slack is a strict fake of the Slack Web API, Socket Mode and the Events API (docs.slack.dev) for tests of bots.
//
//	fake := slack.New(slack.Options{Token: "xoxb-test", AppToken: "xapp-test"})
//	server := httptest.NewServer(fake)
//	// … a bot that uses server.URL + "/api/" as the address of the API …
//	fake.Say(slack.Direct("D7", "U7", "Ann"), "hello")
//	messages := fake.Messages("D7")
//
// The fake refuses what the real API refuses, with the same errors, and makes faults on demand ([Server.Fail]). Requests that the
// API tolerates but a bot should not send are collected by [Server.Violations]: a request during a penalty, two requests for one
// message at a time, an envelope that is not acknowledged in time.
//
// What people do is delivered by Socket Mode to a connected bot. [Server.NextRequest] returns it instead as a signed request of the
// Events API, for a handler under test.
//
// Times are those of time.Now, so the fake can be used in a testing/synctest bubble when it is called without sockets, as an
// [http.RoundTripper] ([Server.RoundTrip]), which carries the connections of Socket Mode as well. A Server is safe for concurrent
// use. It has no goroutines apart from the handlers of connections and their readers, which end with the connection.
//
// # Tests with the fake
//
// A test writes as a person does ([Server.Say], [Server.Command], [Server.Press]) and looks at the channel as a person does
// ([Server.Visible], [Server.Status]). Events that happen without a connection are delivered to the next one.
//
// Connections end in two ways: [Server.Disconnect] asks the bot to open another one, as Slack does every few hours, and [Server.Drop] cuts
// them. An envelope that was not acknowledged is delivered again in both cases, so a bot has to recognize a repetition by its content.
//
// Requests meet faults one at a time ([Server.Fail]) or at random ([Options.Chaos]). After a fault with After the message exists
// although the bot got no answer. Slack has no key for a repetition, so a bot has to look for the message, or must not send it again.
//
// [Message.Versions] shows how a text has grown. The versions of a stream are prefixes of each other, apart from a last one by chat.update.
//
// # Rules
//
// Requests
//
//   - A body is a form or JSON. Some methods ignore JSON, as with Slack. The token is in a header, or in a form.
//   - A refusal has the status 200 and ok=false. Only a request that is too early gets 429, with the wait in the header Retry-After.
//   - [Options.Tiers] enforces the limits of methods in a minute, and [Options.Gap] that of messages in a channel.
//   - A method that needs an app-level token refuses that of the bot, and the reverse.
//
// Messages
//
//   - The id of a message is a text such as 1700000001.123456. Ids ascend in a channel.
//   - markdown_text has at most 12,000 characters and excludes text and blocks. A text above 40,000 characters is cut off, which
//     counts as a violation. The text of an update has at most 4,000.
//   - Blocks are checked in the kinds that bots under test use: sections, markdown, and actions with buttons whose ids are unique.
//   - Metadata needs a type and a payload, and may have 16,000 bytes.
//   - A reply has to name the first message of its thread.
//
// Streams
//
//   - A stream can be appended to for five minutes. Afterwards, and after its end, the error is message_not_in_streaming_state. The
//     limit of time isn't documented; it is known from reports to the official libraries.
//   - A stream consists of texts or of chunks, whichever came first.
//   - A stream has at most 12,000 characters in total. A message can't be updated while it is a stream.
//   - In direct messages a stream has to be in a thread. Elsewhere it has to name a recipient and the recipient's workspace.
//   - A person can stop a stream, and the next request gets stopped_by_user.
//   - Metadata is accepted by the end of a stream only.
//
// Socket Mode
//
//   - The address of a connection works once.
//   - An envelope has to be acknowledged within three seconds. It is delivered up to four times, also on another connection.
//   - After a request to reconnect, a connection gets no further events and is closed after ten seconds.
//
// Events API
//
//   - Requests are signed with the signing secret and the time. They are returned to the test, which calls the handler itself, so a test
//     can also repeat them, change them or let them become too old.
//
// Files
//
//   - An upload has three steps: an address for a file of a fixed length, its bytes, and the completion, which is possible once.
//   - A download without the token is redirected to the page for signing in.
package slack
