package voice_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/internal/voice"
)

// ear is a recogniser and its only listener. It writes down what it gets.
type ear struct {
	listenErr, writeErr error

	mu      sync.Mutex
	log     []string
	bytes   int
	results chan voice.Result
}

func (e *ear) add(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.log = append(e.log, fmt.Sprintf(format, args...))
}

func (e *ear) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.log, " ")
}

func (e *ear) Listen(context.Context, string) (voice.Listener, error) {
	if e.listenErr != nil {
		return nil, e.listenErr
	}
	e.results = make(chan voice.Result, 10)
	e.add("listen")
	return e, nil
}

func (e *ear) Write(pcm []byte) error { e.bytes += len(pcm); return e.writeErr }

func (e *ear) EndUtterance() error {
	e.add("%d", e.bytes)
	e.results <- voice.Result{Text: fmt.Sprint(e.bytes), IsFinal: true}
	e.bytes = 0
	return nil
}

func (e *ear) Results() <-chan voice.Result { return e.results }

func (e *ear) Close() error { e.add("close"); return nil }

// hear runs a microphone in a bubble, and returns it with what it has received, in short.
func hear(t *testing.T, e *ear, detects bool, test func(m *voice.Microphone)) (received string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var list []string
		m := voice.NewMicrophone(voice.MicrophoneOptions{
			Recognizer: e, Detect: detects, Log: slog.New(slog.DiscardHandler),
			OnSpeech: func() { list = append(list, "started") },
			OnResult: func(r voice.Result) {
				if r.Err != nil {
					r.Text = "error"
				}
				list = append(list, r.Text)
			},
		})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { m.Run(ctx); close(done) }()
		test(m)
		synctest.Wait()
		cancel()
		<-done
		received = strings.Join(list, " ")
	})
	return received
}

// sound returns audio of a loudness from 0 to 1, with 400 samples of a period.
func sound(loudness float64, length time.Duration) []byte {
	b := make([]byte, int(length.Seconds()*voice.MicrophoneRate)*2)
	for i := range len(b) / 2 {
		v := loudness * 32_000 * math.Sin(float64(i)*2*math.Pi/40)
		binary.LittleEndian.PutUint16(b[2*i:], uint16(int16(v)))
	}
	return b
}

// Utterances that the client marks are recognised, one after another with one listener.
func TestMarkedUtterances(t *testing.T) {
	e := &ear{}
	got := hear(t, e, false, func(m *voice.Microphone) {
		_ = m.Write(make([]byte, 10)) // before the first
		for _, n := range []int{100, 200} {
			m.Begin()
			m.Begin()
			_ = m.Write(make([]byte, n))
			_ = m.Write(make([]byte, n))
			m.End()
			m.End()
			time.Sleep(time.Second)
		}
		m.Begin()
		_ = m.Write(make([]byte, 50))
		m.Begin() // the mark of the end is missing
		_ = m.Write(make([]byte, 60))
	})
	if got != "200 400 50" || e.String() != "listen 200 400 50 close" {
		t.Errorf("%s; %s", got, e)
	}
}

// An utterance has a limit, and a listener that fails is replaced.
func TestUtteranceEnds(t *testing.T) {
	e := &ear{}
	got := hear(t, e, false, func(m *voice.Microphone) {
		m.Begin()
		for range 130 {
			if err := m.Write(make([]byte, 32_000)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
	})
	if got != "3840000" {
		t.Errorf("%s; %s", got, e)
	}
	e = &ear{writeErr: errors.New("broken")}
	got = hear(t, e, false, func(m *voice.Microphone) {
		for range 2 {
			m.Begin()
			_ = m.Write(make([]byte, 100))
			m.End()
			time.Sleep(time.Second)
		}
	})
	if got != "error error" || e.String() != "listen close listen close" {
		t.Errorf("%s; %s", got, e)
	}
	e = &ear{listenErr: errors.New("broken")}
	if got = hear(t, e, false, func(m *voice.Microphone) { m.Begin(); m.End() }); got != "error" {
		t.Errorf("%s; %s", got, e)
	}
}

// A microphone may be twice as fast as real time, and ahead by ten seconds.
func TestMicrophoneSpeed(t *testing.T) {
	hear(t, &ear{}, false, func(m *voice.Microphone) {
		second := make([]byte, 32_000)
		for i := range 10 {
			if err := m.Write(second); err != nil {
				t.Errorf("second %d: %v", i, err)
			}
		}
		if err := m.Write(second); !errors.Is(err, voice.ErrTooFast) {
			t.Errorf("beyond the limit: %v", err)
		}
		synctest.Wait() // it has heard what was written
		for i := range 100 {
			time.Sleep(500 * time.Millisecond)
			if err := m.Write(second); err != nil {
				t.Errorf("half second %d: %v", i, err)
			}
		}
		if err := m.Write(second); !errors.Is(err, voice.ErrTooFast) {
			t.Errorf("at twice the speed: %v", err)
		}
	})
}

// Utterances are found in the audio: with what precedes their detection, also in noise, and not in a click.
func TestDetectedUtterances(t *testing.T) {
	for name, tt := range map[string]struct {
		audio [][]byte
		want  []time.Duration // length of the utterances
	}{
		"silence":       {audio: [][]byte{sound(0, 3*time.Second)}},
		"speech":        {audio: [][]byte{sound(0, time.Second), sound(0.2, 2*time.Second), sound(0, time.Second)}, want: []time.Duration{2 * time.Second}},
		"two":           {audio: [][]byte{sound(0, time.Second), sound(0.2, time.Second), sound(0, time.Second), sound(0.1, time.Second), sound(0, time.Second)}, want: []time.Duration{time.Second, time.Second}},
		"a short pause": {audio: [][]byte{sound(0, time.Second), sound(0.2, time.Second), sound(0, 300*time.Millisecond), sound(0.2, time.Second), sound(0, time.Second)}, want: []time.Duration{2300 * time.Millisecond}},
		"a click":       {audio: [][]byte{sound(0, time.Second), sound(0.5, 40*time.Millisecond), sound(0, time.Second)}},
		"noise":         {audio: [][]byte{sound(0.004, 5*time.Second)}},
		"in noise":      {audio: [][]byte{sound(0.012, 20*time.Second), sound(0.3, time.Second), sound(0.012, 2*time.Second)}, want: []time.Duration{time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			e := &ear{}
			got := hear(t, e, true, func(m *voice.Microphone) {
				for _, audio := range tt.audio {
					for len(audio) > 0 {
						n := min(len(audio), 1234)
						if err := m.Write(audio[:n]); err != nil {
							t.Fatal(err)
						}
						audio = audio[n:]
						time.Sleep(time.Duration(n) * time.Second / 32_000)
					}
				}
				m.Begin() // marks of a client that need not send them
			})
			words := strings.Fields(got)
			if len(words) != 2*len(tt.want) {
				t.Fatalf("%s, want %v", got, tt.want)
			}
			for i, want := range tt.want {
				var n int
				if _, err := fmt.Sscan(words[2*i+1], &n); err != nil || words[2*i] != "started" {
					t.Fatalf("%s: %v", got, err)
				}
				// The pause at the end belongs to it, and what precedes the detection.
				length := time.Duration(n) * time.Second / 32_000
				if excess := length - want; excess < 600*time.Millisecond || excess > 900*time.Millisecond {
					t.Errorf("utterance %d has %v, want %v and a pause", i, length, want)
				}
			}
		})
	}
}
