package voice

import (
	"context"
	"io"
)

// The sample rates of audio in Hz.
const (
	SpeechRate     = 24_000 // to the person
	MicrophoneRate = 16_000 // from the person
)

// Utterance is a text to speak.
type Utterance struct {
	Text     string // plain text, as it is said aloud; never empty
	Voice    string // a name of the engine; if it is empty, the engine's default
	Language string // a BCP 47 tag such as "de" or "en-US"; if it is empty, the engine decides
}

// Engine turns text into speech. It is safe for concurrent use.
type Engine interface {
	// Speak returns the audio of an utterance as PCM at [SpeechRate], while it is made. The reader returns io.EOF only after the last
	// sample; a body that ends early is an error. Its length is even, whatever the engine sends. The caller closes the reader, which
	// cancels what is left. The end of ctx does the same.
	Speak(ctx context.Context, u Utterance) (io.ReadCloser, error)
}

// Recognizer turns speech into text. It is safe for concurrent use.
type Recognizer interface {
	// Listen begins to recognise the speech of a person. The caller closes the listener.
	Listen(ctx context.Context, language string) (Listener, error)
}

// Listener recognises the speech from one microphone. Write, EndUtterance and Close are called by one goroutine, while another one may
// receive results.
type Listener interface {
	// Write takes PCM at [MicrophoneRate], with an even length. It doesn't wait for the recogniser.
	Write(pcm []byte) error
	// EndUtterance says that the person has stopped speaking, so the text since the last utterance is final. It doesn't wait for the
	// text. Recognisers that find the end themselves may ignore it.
	EndUtterance() error
	// Results returns the recognised texts in order. The channel is closed when the listener has ended; the last result has the reason
	// if it wasn't Close.
	Results() <-chan Result
	// Close ends the listener and returns when its goroutines have ended. It drops audio whose text is not known yet.
	Close() error
}

// Result is a recognised text.
type Result struct {
	Text    string
	IsFinal bool  // the utterance has ended; otherwise the text may still change
	IsEnd   bool  // EndUtterance has ended it, and not a pause or a limit; no text of the audio before it follows
	Err     error // why the listener has failed; then there is no text, and no further result follows
}
