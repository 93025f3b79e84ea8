// Package recognition contains the recognizers that turn speech into text: the transcription API of OpenAI (and servers that are compatible
// with it), Deepgram's live socket, and pocketsphinx on this machine.
//
// [New] makes a recognizer from [Options], and [Kinds] lists what a configuration can choose from.
//
//	recognizer, err := recognition.New(recognition.Options{Engine: "deepgram", Key: key})
//	...
//	listener, err := recognizer.Listen(ctx, "en")
//	...
//	defer listener.Close()
//	err = listener.Write(pcm)      // at 16,000 Hz, while the person speaks
//	err = listener.EndUtterance()  // when the person pauses
//	result := <-listener.Results()
//
// All listeners share a queue, which takes the audio, and one goroutine, which belongs to the listener and ends with Close.
//
// Invariants
//
//   - Write never waits. Audio that a recognizer doesn't accept in time fills a queue of limited length, and then the listener fails.
//   - Each EndUtterance is followed by a final result, whose text is empty for silence. An utterance that reaches [maxUtterance]
//     ends by itself. Deepgram also ends utterances at pauses.
//   - A listener that fails sends its error as the last result. It never reconnects: audio would be missing without notice.
//   - Errors of services and programs are a [Failure], whose reason says what to do. They never contain the API key.
//   - When Close has returned, all goroutines and processes of the listener are gone.
package recognition
