package voice_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/leat-dev/leat/internal/voice"
	"github.com/leat-dev/leat/internal/voice/sentence"
)

// runeSamples is the length of a spoken character of the fake engine: 50 ms.
const runeSamples = voice.SpeechRate / 20

// engine is an engine in memory. The samples of its n-th utterance, from 1, all have the value n.
type engine struct {
	latency time.Duration // before the first sample
	factor  float64       // speed as a multiple of real time; 0: all at once
	fail    func(text string) (after int, err error)

	mu         sync.Mutex
	utterances []voice.Utterance
	open       int
}

func (e *engine) Speak(ctx context.Context, u voice.Utterance) (io.ReadCloser, error) {
	e.mu.Lock()
	e.utterances = append(e.utterances, u)
	n := len(e.utterances)
	e.open++
	e.mu.Unlock()
	r := &audio{e: e, ctx: ctx, n: n, samples: utf8.RuneCountInString(u.Text) * runeSamples, end: io.EOF, begin: time.Now().Add(e.latency)}
	if e.fail != nil {
		if after, err := e.fail(u.Text); err != nil {
			r.samples, r.end = min(after, r.samples), err
		}
	}
	return r, nil
}

// text returns the text of the n-th utterance.
func (e *engine) text(n int) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.utterances[n-1].Text
}

func (e *engine) texts() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []string
	for _, u := range e.utterances {
		list = append(list, u.Text)
	}
	return list
}

// audio is the audio of one utterance. It returns an odd number of bytes now and then, as bodies of services do.
type audio struct {
	e       *engine
	ctx     context.Context
	n       int
	begin   time.Time
	samples int
	offset  int // bytes
	end     error
	closed  bool
}

func (r *audio) Read(p []byte) (int, error) {
	n := min(len(p), 2*r.samples-r.offset, 961)
	ready := r.begin
	if f := r.e.factor; f > 0 {
		ready = ready.Add(time.Duration(float64(r.offset+n) / 48_000 / f * float64(time.Second)))
	}
	select {
	case <-time.After(time.Until(ready)):
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	}
	if n == 0 {
		return 0, r.end
	}
	sample := binary.LittleEndian.AppendUint16(nil, uint16(r.n))
	for i := range n {
		p[i] = sample[(r.offset+i)%2]
	}
	r.offset += n
	return n, nil
}

func (r *audio) Close() error {
	if !r.closed {
		r.closed = true
		r.e.mu.Lock()
		defer r.e.mu.Unlock()
		r.e.open--
	}
	return nil
}

// segmenter ends a unit behind ". " and at the end of the text.
type segmenter struct {
	text string
	from int
}

func (s *segmenter) Write(delta string) []sentence.Unit {
	s.text += delta
	var units []sentence.Unit
	for {
		i := strings.Index(s.text[s.from:], ". ")
		if i < 0 {
			return units
		}
		units = append(units, s.unit(s.from+i+2))
	}
}

func (s *segmenter) Flush() []sentence.Unit {
	if !strings.HasSuffix(s.text[s.from:], ".") {
		return nil
	}
	return s.Close()
}

func (s *segmenter) Close() []sentence.Unit {
	if s.from == len(s.text) {
		return nil
	}
	return []sentence.Unit{s.unit(len(s.text))}
}

func (s *segmenter) unit(end int) sentence.Unit {
	u := sentence.Unit{Text: strings.TrimSpace(s.text[s.from:end]), Start: s.from, End: end}
	s.from = end
	return u
}

// frame is any JSON frame of a session.
type frame struct {
	Type, State, Turn, Text, Code string
	Start, End                    int
	Sample, Generation, Samples   int64
}

// event is something that a session wrote.
type event struct {
	at      time.Time
	frame   frame
	samples []int // of PCM
	isFlush bool
}

// recorder is the connection of a client. It checks what holds for every session.
type recorder struct {
	t     testing.TB
	delay time.Duration // of each write

	mu     sync.Mutex
	events []event
	fail   error
	change chan struct{}
}

func newRecorder(t testing.TB) *recorder { return &recorder{t: t, change: make(chan struct{})} }

func (r *recorder) add(e event) error {
	time.Sleep(r.delay)
	r.mu.Lock()
	defer r.mu.Unlock()
	e.at = time.Now()
	r.events = append(r.events, e)
	close(r.change)
	r.change = make(chan struct{})
	return r.fail
}

func (r *recorder) Audio(pcm []byte) error {
	if len(pcm) < 2 || len(pcm)%2 != 0 || len(pcm) > voice.MaxFrame {
		r.t.Errorf("a frame of %d bytes", len(pcm))
	}
	var samples []int
	for i := 0; i+1 < len(pcm); i += 2 {
		samples = append(samples, int(binary.LittleEndian.Uint16(pcm[i:])))
	}
	return r.add(event{samples: samples})
}

func (r *recorder) Flush() error { return r.add(event{isFlush: true}) }

func (r *recorder) Frame(f voice.Frame) error {
	b, err := json.Marshal(f)
	if err != nil {
		r.t.Error(err)
	}
	var e event
	if err := json.Unmarshal(b, &e.frame); err != nil {
		r.t.Error(err)
	}
	return r.add(e)
}

// list returns what was written so far.
func (r *recorder) list() []event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]event(nil), r.events...)
}

// samples returns all PCM so far.
func (r *recorder) samples() []int {
	var all []int
	for _, e := range r.list() {
		all = append(all, e.samples...)
	}
	return all
}

// frames returns the frames of a type so far.
func (r *recorder) frames(kind string) []frame {
	var list []frame
	for _, e := range r.list() {
		if e.frame.Type == kind {
			list = append(list, e.frame)
		}
	}
	return list
}

// await waits until the condition is met.
func (r *recorder) await(isMet func() bool) {
	r.t.Helper()
	limit := time.After(10 * time.Minute)
	for {
		r.mu.Lock()
		change := r.change
		r.mu.Unlock()
		if isMet() {
			return
		}
		select {
		case <-change:
		case <-limit:
			r.t.Fatalf("nothing happened for long; so far: %s", r)
		}
	}
}

// String lists what was written, in short.
func (r *recorder) String() string {
	var b strings.Builder
	for _, e := range r.list() {
		switch {
		case e.isFlush:
			b.WriteString("flush ")
		case e.samples != nil:
			fmt.Fprintf(&b, "%d×%d ", len(e.samples), e.samples[0])
		default:
			fmt.Fprintf(&b, "%s(%s%s%s) ", e.frame.Type, e.frame.Turn, e.frame.State, e.frame.Code)
		}
	}
	return b.String()
}

// started is a session that runs.
type started struct {
	*voice.Session
	*recorder
	engine *engine
	end    func()
}

var errTestOver = errors.New("the test is over")

// start runs a session until end is called, which is required.
func start(t testing.TB, e *engine, change func(*recorder)) *started {
	t.Helper()
	s := &started{engine: e, recorder: newRecorder(t)}
	if change != nil {
		change(s.recorder)
	}
	o := voice.Options{Log: slog.New(slog.DiscardHandler)}
	o.DivideWith(func() voice.Segmenter { return &segmenter{} })
	if e != nil {
		o.Engine = e
	}
	s.Session = voice.NewSession(o)
	ctx, cancel := context.WithCancelCause(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, s.recorder) }()
	s.end = func() {
		cancel(errTestOver)
		if err := <-ended; !errors.Is(err, context.Canceled) && !errors.Is(err, errTestOver) && !errors.Is(err, s.recorder.fail) {
			t.Errorf("ended with %v", err)
		}
		if e != nil && e.open != 0 {
			t.Errorf("%d utterances are not closed", e.open)
		}
	}
	return s
}

// say passes a complete answer.
func (s *started) say(turn, text string) { s.Update(turn, text, true) }

// awaitDone waits for the end of an answer.
func (s *started) awaitDone(turn string) {
	s.t.Helper()
	s.await(func() bool {
		for _, f := range s.frames("stream_done") {
			if f.Turn == turn {
				return true
			}
		}
		return false
	})
}

// maxLead returns how much of the audio was ahead of real time at most, and the longest pause of its playback.
func maxLead(events []event) (lead, gap time.Duration) {
	var since, end time.Time
	for _, e := range events {
		if e.isFlush {
			end = time.Time{}
		}
		if e.samples == nil {
			continue
		}
		if end.IsZero() {
			since, end = e.at, e.at
		}
		if end.Before(e.at) {
			gap = max(gap, e.at.Sub(end))
			end = e.at
		}
		end = end.Add(time.Duration(len(e.samples)) * time.Second / voice.SpeechRate)
		lead = max(lead, end.Sub(e.at))
	}
	_ = since
	return lead, gap
}
