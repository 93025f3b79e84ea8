package note

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/voice"
	"github.com/leat-dev/leat/internal/voice/sentence"
)

const (
	// maxNote is the largest note that is transcribed, in bytes. Ten minutes at 128 kbit/s are 9.6 MB.
	maxNote = 10 << 20
	// maxPiece is how much audio is recognised at a time, in bytes: 50 s. In the last 8 s of it a pause is looked for, in steps of 20 ms.
	maxPiece = 50 * 2 * voice.MicrophoneRate
	searched = 8 * 2 * voice.MicrophoneRate
	window   = 2 * voice.MicrophoneRate / 50
)

// Options configure [Notes]. Log is required.
type Options struct {
	Engine     voice.Engine     // speaks answers; nil if they can't be spoken
	Recognizer voice.Recognizer // transcribes notes; nil if they can't be transcribed
	// Voice and Language are those of each [voice.Utterance], and RecognitionLanguage is that of people. They may be empty.
	Voice, Language, RecognitionLanguage string
	Log                                  *slog.Logger
}

// Notes converts between text and voice notes. It is safe for concurrent use.
type Notes struct {
	options Options
	codec   *codec
}

// New returns Notes. The error is [errNoCodec] if opus-tools isn't installed.
func New(o Options) (*Notes, error) {
	c, err := newCodec(o.Log)
	if err != nil {
		return nil, err
	}
	return &Notes{o, c}, nil
}

// Speak returns an answer, which is Markdown, as a voice note. It is nil if nothing of the answer can be said.
func (n *Notes) Speak(ctx context.Context, answer string) ([]byte, error) {
	s := sentence.New(n.options.Language)
	var pcm []byte
	for _, u := range append(s.Write(answer), s.Close()...) {
		if u.Text == "" {
			continue
		}
		var err error
		if pcm, err = n.say(ctx, pcm, u); err != nil {
			return nil, fmt.Errorf("note: speak: %w", err)
		}
		if len(pcm) >= 2*voice.SpeechRate*int(maxLength/time.Second) {
			break
		}
	}
	if len(pcm) == 0 {
		return nil, nil
	}
	return n.codec.encode(ctx, pcm)
}

// say appends the audio of a sentence to pcm.
func (n *Notes) say(ctx context.Context, pcm []byte, u sentence.Unit) ([]byte, error) {
	r, err := n.options.Engine.Speak(ctx, voice.Utterance{Text: u.Text, Voice: n.options.Voice, Language: cmp.Or(u.Language, n.options.Language)})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	audio, err := io.ReadAll(io.LimitReader(r, int64(2*voice.SpeechRate*int(maxLength/time.Second)-len(pcm))))
	return append(pcm, audio...), err
}

// Transcribe returns the text of a voice note. It is empty if nothing was said.
func (n *Notes) Transcribe(ctx context.Context, note io.Reader) (string, error) {
	b, err := io.ReadAll(io.LimitReader(note, maxNote+1))
	if err != nil {
		return "", fmt.Errorf("note: read: %w", err)
	}
	if len(b) > maxNote {
		return "", errTooLong
	}
	pcm, err := n.codec.decode(ctx, b)
	if err != nil {
		return "", err
	}
	return n.recognize(ctx, pcm)
}

// recognize returns what is said in a piece of audio. A recogniser takes a limited amount at a time, so the audio is divided at pauses.
func (n *Notes) recognize(ctx context.Context, pcm []byte) (string, error) {
	l, err := n.options.Recognizer.Listen(ctx, n.options.RecognitionLanguage)
	if err != nil {
		return "", fmt.Errorf("note: transcribe: %w", err)
	}
	defer func() { _ = l.Close() }() // its failures are results
	var texts []string
	for len(pcm) > 0 {
		size := pauseIn(pcm)
		text, err := recognizePiece(ctx, l, pcm[:size])
		if err != nil {
			return "", fmt.Errorf("note: transcribe: %w", err)
		}
		if text != "" {
			texts = append(texts, text)
		}
		pcm = pcm[size:]
	}
	return strings.Join(texts, " "), nil
}

// recognizePiece returns what is said in a piece that a listener takes as a whole.
func recognizePiece(ctx context.Context, l voice.Listener, pcm []byte) (string, error) {
	if err := l.Write(pcm); err != nil {
		return "", err
	}
	if err := l.EndUtterance(); err != nil {
		return "", err
	}
	var texts []string
	for {
		select {
		case r, ok := <-l.Results():
			switch {
			case !ok:
				return "", io.ErrUnexpectedEOF
			case r.Err != nil:
				return "", r.Err
			case r.IsFinal && r.Text != "":
				texts = append(texts, r.Text)
			}
			if r.IsEnd {
				return strings.Join(texts, " "), nil
			}
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// pauseIn returns the length of the first piece of audio to recognise: all of it if it is short, else up to the quietest moment in its
// last seconds.
func pauseIn(pcm []byte) int {
	if len(pcm) <= maxPiece {
		return len(pcm)
	}
	best, quietest := maxPiece, math.MaxInt
	for at := maxPiece - searched; at+window <= maxPiece; at += window {
		energy := 0
		for i := at; i < at+window; i += 2 {
			sample := int(int16(binary.LittleEndian.Uint16(pcm[i:])))
			energy += sample * sample
		}
		if energy <= quietest {
			best, quietest = at+window/2, energy
		}
	}
	return best
}
