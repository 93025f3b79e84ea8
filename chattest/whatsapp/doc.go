// Package whatsapp is a strict fake of the WhatsApp Cloud API (developers.facebook.com/docs/whatsapp/cloud-api, version 24.0) for
// tests of bots.
//
//	fake := whatsapp.New(whatsapp.Options{Token: "token", Number: "100", AppSecret: "secret", VerifyToken: "verify"})
//	server := httptest.NewServer(fake)
//	// … a bot that uses server.URL + "/v24.0" as the address of the API …
//	err := fake.Subscribe("https://bot.example/webhook", whatsapp.Handler(bot))
//	fake.Say(whatsapp.Person{ID: "15550001", Name: "Ann"}, "hello")
//	messages := fake.Messages("15550001")
//
// The fake refuses what the real API refuses, in the same form, and makes faults on demand ([Server.Fail]). Requests that the API
// tolerates but a bot should not do are collected by [Server.Violations], such as two messages to one person at a time.
//
// What people do becomes a signed request to the bot's webhook before the method returns. If the webhook doesn't confirm it, the
// fake keeps it, and [Server.Redeliver] sends it again.
//
// Times are those of time.Now, so the fake can be used in a testing/synctest bubble when it is called without sockets, as an
// [http.RoundTripper] ([Server.RoundTrip]). A Server is safe for concurrent use and has no goroutines.
package whatsapp
