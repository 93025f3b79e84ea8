package voicetest

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/voice"
)

// Engine is an engine in memory. The zero value speaks at once, without faults. Its fields must not be changed after the first utterance.
//
// Every sample says to which utterance it belongs: the first one is -1 for utterance 0, -2 for utterance 1 and so on, and the others are
// positive and count up. So tests find utterances with [Marks] in any recording, and no sample can be mistaken for silence.
type Engine struct {
	// Latency passes before the first sample, and Factor is the speed as a multiple of real time. If Factor is 0, all samples come at once.
	Latency time.Duration
	Factor  float64
	// Fail returns an error of utterance n, or nil. After samples, the reader fails with the error; at 0, Speak itself does. It may be nil.
	Fail func(n int) (after int, err error)

	mu         sync.Mutex
	utterances []voice.Utterance
	// open counts the readers that are not closed yet.
	open int
}

var _ voice.Engine = (*Engine)(nil)

// PCM returns the audio of a text as the utterance n.
func PCM(n int, text string) []byte {
	count := SamplesPerRune * utf8.RuneCountInString(text)
	b := make([]byte, 0, 2*count)
	for i := range count {
		sample := int16(i%32_000 + 1)
		if i == 0 {
			sample = int16(-1 - n)
		}
		b = binary.LittleEndian.AppendUint16(b, uint16(sample))
	}
	return b
}

// Mark is the beginning of an utterance in a recording.
type Mark struct {
	// Utterance is the number of the utterance, from 0.
	Utterance int
	// Sample is the position in the recording, in samples.
	Sample int
}

// Marks returns the utterances that begin in a recording.
func Marks(pcm []byte) []Mark {
	var marks []Mark
	for i := 0; 2*i+1 < len(pcm); i++ {
		if sample := int16(binary.LittleEndian.Uint16(pcm[2*i:])); sample < 0 {
			marks = append(marks, Mark{Utterance: -1 - int(sample), Sample: i})
		}
	}
	return marks
}

// Utterances returns all utterances so far.
func (e *Engine) Utterances() []voice.Utterance {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]voice.Utterance(nil), e.utterances...)
}

// Open returns how many readers are not closed yet.
func (e *Engine) Open() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open
}

// Speak implements [voice.Engine].
func (e *Engine) Speak(ctx context.Context, u voice.Utterance) (io.ReadCloser, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(e.utterances)
	e.utterances = append(e.utterances, u)
	r := &reader{engine: e, pcm: PCM(n, u.Text), end: io.EOF, begin: time.Now().Add(e.Latency)}
	if e.Fail != nil {
		after, err := e.Fail(n)
		if err != nil && after == 0 {
			return nil, err
		}
		if err != nil {
			r.pcm, r.end = r.pcm[:min(2*after, len(r.pcm))], err
		}
	}
	e.open++
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	return r, nil
}

// reader is the audio of one utterance.
type reader struct {
	engine *Engine
	ctx    context.Context
	cancel context.CancelCauseFunc
	// begin is when the first sample is ready.
	begin time.Time
	// pcm[:offset] was read.
	pcm    []byte
	offset int
	// end is returned after the last sample.
	end   error
	close sync.Once
}

// Read implements [io.Reader]. It returns at most 20 ms of audio, so that a test with a Factor sees it arrive piece by piece.
func (r *reader) Read(p []byte) (int, error) {
	n := min(len(p), len(r.pcm)-r.offset, voice.SpeechRate/50*2)
	if n > 1 {
		n &^= 1
	}
	ready := r.begin
	if f := r.engine.Factor; f > 0 {
		seconds := float64(r.offset+n) / (2 * voice.SpeechRate) / f
		ready = ready.Add(time.Duration(seconds * float64(time.Second)))
	}
	if wait := time.Until(ready); wait > 0 {
		_ = retry.Sleep(r.ctx, wait) // the next line finds out whether it has ended
	}
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	if n == 0 && r.offset == len(r.pcm) {
		return 0, r.end
	}
	copy(p, r.pcm[r.offset:r.offset+n])
	r.offset += n
	return n, nil
}

// Close implements [io.Closer]. It ends a pending Read.
func (r *reader) Close() error {
	r.close.Do(func() {
		r.cancel(io.ErrClosedPipe)
		r.engine.mu.Lock()
		defer r.engine.mu.Unlock()
		r.engine.open--
	})
	return nil
}

// SamplesPerRune is the length of a spoken character at [voice.SpeechRate]: 50 ms, about the speed of a person.
const SamplesPerRune = voice.SpeechRate / 20

const (
	// tone is the frequency of the fake speech in Hz.
	tone = 440
	// loudness is its amplitude, of 32,767.
	loudness = 20_000
)

// Speech returns what the server sends for a text, at a rate in Hz: a tone whose length is that of the text.
func Speech(text string, rate int) []byte {
	n := utf8.RuneCountInString(text) * SamplesPerRune * rate / voice.SpeechRate
	b := make([]byte, 0, 2*n)
	for i := range n {
		x := loudness * math.Sin(2*math.Pi*tone*float64(i)/float64(rate))
		b = binary.LittleEndian.AppendUint16(b, uint16(int16(x)))
	}
	return b
}
