// Package telegram is a strict fake of the Telegram Bot API (core.telegram.org/bots/api, version 10.3) for tests of bots.
//
//	fake := telegram.New(telegram.Options{Token: "1:test"})
//	server := httptest.NewServer(fake)
//	// … a bot that uses server.URL as the address of the API …
//	fake.Say(telegram.Private(7, "Ann"), "hello")
//	messages := fake.Messages(7)
//
// The fake refuses what the real API refuses, with the same texts, and makes faults on demand ([Server.Fail]). Requests that the
// API tolerates but a bot should not do are collected by [Server.Violations]: a request during a penalty, two requests for one
// message at a time.
//
// Times are those of time.Now, so the fake can be used in a testing/synctest bubble when it is called without sockets, as an
// [http.RoundTripper] ([Server.RoundTrip]). A Server is safe for concurrent use and has no goroutines.
//
// # Tests with the fake
//
// A test writes as a person does ([Server.Say], [Server.SendFile], [Server.Press]) and looks at the chat as a person does
// ([Server.Visible], [Server.Draft]). It should not depend on the number of requests, except for a limit that keeps it small.
//
// A fault meets the first request that matches it ([Server.Fail]). A request that is closed before its effect and one that is closed after
// it look the same to the bot; a test of both shows that a message neither gets lost nor appears twice. A fault with Release stops a
// request until the test has looked at what happens meanwhile.
//
// For random faults use [Options.Chaos] with a fixed seed. In a synctest bubble an hour of penalties takes no time.
//
// A test should end with a look at [Server.Violations], because the real server punishes them in ways that a fake can't show: with longer
// penalties or a ban of the bot.
//
// # Rules
//
// Requests
//
//   - Parameters may be JSON, a form, multipart or a query, as clients differ. A number may be written as a string.
//   - An unknown chat, a person who has blocked the bot, and a group that became a supergroup are refused in this order. The last refusal
//     names the new id in its parameters.
//   - A request that is too early is refused with 429 and whole seconds in parameters.retry_after. The penalty holds for the chat, also for
//     requests that the limit doesn't count.
//
// Texts
//
//   - A text has at most 4096 UTF-16 code units after its markup was parsed, and isn't blank.
//   - Entities are ranges of the text in UTF-16 code units, which split no character and don't overlap.
//   - Parse mode HTML knows a fixed set of tags, which have to be balanced. Other modes are refused, because no bot under test uses them.
//   - An edit that changes nothing is refused, as the real API does.
//
// Messages
//
//   - Numbers of messages ascend in a supergroup by itself, and in all private chats of the bot together.
//   - A reply to a deleted message is refused, unless the request is lenient about that.
//   - The general topic has to be omitted: its number 1 is refused.
//   - Only messages of the bot can be edited. A message can be deleted for 48 hours.
//   - The data of a button has 1 to 64 bytes.
//
// Drafts
//
//   - Only private chats have drafts. Their id isn't 0. Elsewhere the refusal is TEXTDRAFT_PEER_INVALID.
//
//   - A draft is shown for 30 s after its last update, and until the bot sends a message to the same topic. Each topic has one.
//
//   - A rich draft is in HTML; Markdown and blocks are refused, because no bot under test uses them. Its tags have to be balanced XML
//     elements of the API's list without media. It has at most 32,768 characters, 500 blocks, 16 levels and 20 columns.
//
// Updates
//
//   - An update is repeated until a poll has an offset behind it. Only the kinds that the bot asks for are delivered.
//   - Two polls at a time, and a poll while a webhook is set, are refused with 409.
//   - A webhook gets its secret in a header. Its updates come one at a time, and again after an answer other than 200.
//
// Files
//
//   - A photo has to be an image, and a voice note Ogg. A person can forbid voice notes. Bots can send files of up to 50 MiB and download up to 20 MiB.
package telegram
