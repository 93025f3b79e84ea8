package wire_test

import (
	"testing"
	"time"

	"github.com/leat-dev/leat/internal/voice/speech"
	"github.com/leat-dev/leat/internal/voice/wire"
)

// withEspeak returns options with the default engine, and skips the test without it.
func withEspeak(t testing.TB) wire.Options {
	t.Helper()
	engine, err := speech.Default(nil)
	if err != nil {
		t.Skip("SKIPPED: espeak-ng is not installed; apt install espeak-ng")
	}
	return wire.Options{Engine: engine, Language: "en"}
}

// A spoken answer has the length of its sentences, each spoken alone.
func TestEspeakSpeaksAll(t *testing.T) {
	o := withEspeak(t)
	want := 0
	s := serve(t, o)
	for _, text := range []string{answer, answer[:42]} { // the whole, and the first sentence
		c := s.dial("listener=" + text[:1])
		turn := "t" + time.Now().String()
		s.chat.write(turn, text, true)
		_, pcm := c.until("stream_done", turn)
		if want == 0 {
			want = len(pcm)
		}
		_ = c.socket.CloseNow()
		if seconds := float64(len(pcm)) / 48_000; len(pcm)%2 != 0 || seconds < 1 || seconds > 10 {
			t.Errorf("%q takes %.2f s", text, seconds)
		}
		if text != answer && len(pcm)*2 > want*11/10 {
			t.Errorf("the first sentence has %d of %d bytes", len(pcm), want)
		}
	}
}

// BenchmarkFirstAudio measures the time from the end of the first sentence in the answer's text to the first PCM that the client reads.
func BenchmarkFirstAudio(b *testing.B) {
	s := serve(b, withEspeak(b))
	c := s.dial("")
	var total, worst time.Duration
	for b.Loop() {
		turn := "t" + time.Now().String()
		s.chat.write(turn, "This is the first sentence of the answer.", false)
		began := time.Now()
		s.chat.write(turn, "This is the first sentence of the answer. A", false) // the next character proves the end of the sentence
		for {
			r, code := c.read()
			if code != 0 {
				b.Fatal(code)
			}
			if len(r.audio) > 1 {
				break
			}
		}
		took := time.Since(began)
		total += took
		worst = max(worst, took)
		c.send(`{"type":"interrupt","played":0}`)
		c.untilFlush()
	}
	b.ReportMetric(float64(total.Microseconds())/float64(b.N), "µs/first-byte")
	b.ReportMetric(float64(worst.Microseconds()), "µs/worst")
}
