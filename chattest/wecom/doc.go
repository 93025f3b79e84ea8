// Package wecom is a strict fake of the long connection of WeCom's intelligent bots (developer.work.weixin.qq.com, document 101031)
// for tests of bots.
//
//	fake := wecom.New(wecom.Options{BotID: "bot", Secret: "secret"})
//	server := httptest.NewServer(fake)
//	// … a bot that connects to server.URL …
//	fake.Say(wecom.Private("ann"), "hello")
//	messages := fake.Messages("ann")
//
// The fake refuses what the real platform refuses, with the same codes, and makes faults on demand ([Server.Fail]). Frames that the
// platform tolerates but a bot should not send are collected by [Server.Violations], such as a second frame for a request before the
// first one is acknowledged.
//
// A message that a person writes while no bot is connected is not delivered.
//
// Times are those of time.Now, so the fake can be used in a testing/synctest bubble when it is called without sockets, as an
// [http.RoundTripper] ([Server.RoundTrip]). A Server is safe for concurrent use. Its goroutines are those of the connections.
package wecom
