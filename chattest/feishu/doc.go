// Package feishu is a strict fake of the open platform of Feishu and Lark (open.feishu.cn) for tests of bots: messages, cards that
// grow (CardKit), files and events.
//
//	fake := feishu.New(feishu.Options{AppID: "cli_1", AppSecret: "secret", EncryptKey: "key"})
//	server := httptest.NewServer(fake)
//	// … a bot that uses server.URL as the address of the platform …
//	err := fake.Subscribe("https://bot.example/webhook", feishu.Handler(bot))
//	fake.Say(feishu.Private("oc_1", "ou_ann"), "hello")
//	messages := fake.Messages("oc_1")
//
// The fake refuses what the real platform refuses, in the same form, and makes faults on demand ([Server.Fail]). Requests that the
// platform tolerates but a bot should not do are collected by [Server.Violations], such as a request during a penalty.
//
// What people do becomes an encrypted and signed request to the bot's webhook before the method returns. If the webhook doesn't
// confirm it, the fake keeps it, and [Server.Redeliver] sends it again.
//
// Times are those of time.Now, so the fake can be used in a testing/synctest bubble when it is called without sockets, as an
// [http.RoundTripper] ([Server.RoundTrip]). A Server is safe for concurrent use and has no goroutines.
package feishu
