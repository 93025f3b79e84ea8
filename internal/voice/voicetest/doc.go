// Package voicetest contains fakes for tests of voices: a server with the APIs of all speech services ([NewServer]), and an [Engine] in
// memory.
//
// The server accepts a request only as the services document it: path, method, headers, and no field that it doesn't know. Anything else
// fails the test. A [Fault] makes it misbehave.
//
//	server := voicetest.NewServer(t)
//	server.SetFault(voicetest.Fault{Reset: true, After: 1_000})
//	engine, err := speech.New(speech.Options{Engine: "openai", URL: server.URL + "/v1", Key: voicetest.Key})
//
// Audio of the fakes has an exact length: [SamplesPerRune] samples for each character of the text.
package voicetest
