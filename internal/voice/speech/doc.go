// Package speech contains the engines that turn text into speech: espeak-ng on this machine, and the HTTP APIs of OpenAI (and servers that
// are compatible with it), ElevenLabs, Cartesia and Deepgram.
//
// [New] makes an engine from [Options], [Default] the one that works without any. [Kinds] lists what a configuration can choose from.
//
//	engine, err := speech.New(speech.Options{Engine: "openai", Key: key})
//	...
//	audio, err := engine.Speak(ctx, voice.Utterance{Text: "Hello."})
//	...
//	defer audio.Close()
//	_, err = io.Copy(w, audio) // PCM at 24,000 Hz
//
// An answer passes three readers: a source, which notices when nothing arrives, a decoder, which finds the format and resamples, and a
// stream, which turns errors into failures.
//
// Invariants
//
//   - Audio is passed on while it arrives. Every engine returns whole samples at [voice.SpeechRate], whatever the service sends. An answer
//     that isn't 16-bit mono PCM is refused.
//   - An answer ends without an error only if it is complete: the last chunk, the announced length or the exit status 0.
//   - Errors of services and programs are a [Failure], whose reason says what to do. They never contain the API key.
//   - Close and the end of the context stop the request or the process at once. When Close has returned, the process is gone.
//   - An engine that sends nothing for a while fails, so a caller never waits forever.
package speech
