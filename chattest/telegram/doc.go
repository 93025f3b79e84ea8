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
package telegram
