package voicetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/internal/voice"
)

func TestEngine(t *testing.T) {
	e := &Engine{}
	var all []byte
	texts := []string{"Hello.", "Ein zweiter Satz, größer.", "三"}
	want := []Mark{{0, 0}, {1, 6 * SamplesPerRune}, {2, 31 * SamplesPerRune}}
	for n, text := range texts {
		r, err := e.Speak(t.Context(), voice.Utterance{Text: text})
		if err != nil || e.Open() != 1 {
			t.Fatal(err, e.Open())
		}
		audio, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(audio, PCM(n, text)) {
			t.Errorf("%q: %d bytes, %v", text, len(audio), err)
		}
		_ = r.Close()
		_ = r.Close()
		all = append(all, audio...)
	}
	if e.Open() != 0 || len(e.Utterances()) != 3 || e.Utterances()[1].Text != texts[1] {
		t.Errorf("%d open, %v", e.Open(), e.Utterances())
	}
	got := Marks(all)
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("marks %v, want %v", got, want)
	}
	if len(all) != 2*32*SamplesPerRune || bytes.Contains(all, []byte{0, 0, 0, 0}) {
		t.Errorf("%d bytes, or silence", len(all))
	}
}

// The audio comes at the configured speed, and a pending read ends with Close and with the context.
func TestEngineTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &Engine{Latency: 100 * time.Millisecond, Factor: 4}
		begin := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		r, err := e.Speak(ctx, voice.Utterance{Text: "twenty characters..."})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := r.Read(make([]byte, 4_000)); n != 960 || err != nil || time.Since(begin) != 105*time.Millisecond {
			t.Errorf("%d bytes, %v after %v", n, err, time.Since(begin))
		}
		rest, err := io.ReadAll(r)
		if len(rest) != 48_000-960 || err != nil || time.Since(begin) != 350*time.Millisecond {
			t.Errorf("%d bytes, %v after %v", len(rest), err, time.Since(begin))
		}
		for _, end := range []func(io.Closer){func(r io.Closer) { _ = r.Close() }, func(io.Closer) { cancel() }} {
			r, err := e.Speak(ctx, voice.Utterance{Text: "x"})
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			time.AfterFunc(10*time.Millisecond, func() { end(r) })
			if n, err := r.Read(make([]byte, 10)); n != 0 || err == nil || time.Since(begin) != 10*time.Millisecond {
				t.Errorf("%d bytes, %v after %v", n, err, time.Since(begin))
			}
			_ = r.Close()
		}
		if _, err := e.Speak(ctx, voice.Utterance{Text: "x"}); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end of the context: %v", err)
		}
	})
}

func TestEngineFaults(t *testing.T) {
	broken := errors.New("broken")
	e := &Engine{Fail: func(n int) (int, error) {
		switch n {
		case 0:
			return 0, broken
		case 1:
			return 100, broken
		}
		return 0, nil
	}}
	if _, err := e.Speak(t.Context(), voice.Utterance{Text: "x"}); err != broken {
		t.Errorf("%v", err)
	}
	for n, want := range []struct {
		length int
		err    error
	}{{200, broken}, {2 * SamplesPerRune, nil}} {
		r, err := e.Speak(t.Context(), voice.Utterance{Text: "x"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if len(got) != want.length || err != want.err {
			t.Errorf("utterance %d: %d bytes, %v", n+1, len(got), err)
		}
	}
}
