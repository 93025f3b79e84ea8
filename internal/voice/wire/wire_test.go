package wire_test

import (
	"encoding/binary"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/voice/voicetest"
	"github.com/leat-dev/leat/internal/voice/wire"
)

const answer = "This is the first sentence of the answer. And this is the second sentence of the answer, which is a bit longer."

// samplesOf returns the length of the speech for texts.
func samplesOf(texts ...string) (n int) {
	for _, text := range texts {
		n += len([]rune(text)) * voicetest.SamplesPerRune
	}
	return n
}

// A message is sent, and its answer is heard completely.
func TestAnswerIsHeard(t *testing.T) {
	s := serve(t, wire.Options{Engine: &voicetest.Engine{}})
	c := s.dial("")
	if r, _ := c.read(); r.frame.Type != "ready" || !r.frame.Speech || r.frame.Recognition || r.frame.VAD != "client" || r.frame.Generation != 1 {
		t.Errorf("%+v", r.frame)
	}
	c.send(`{"type":"text","text":" Hi! "}`)
	s.chat.await(t, "send Hi!")
	short := "Short answer."
	s.chat.write("t", short[:5], false)
	c.until("state", "thinking")
	s.chat.write("t", short, true)
	c.until("caption", short)
	r, pcm := c.until("stream_done", "t")
	if len(pcm) != 2*samplesOf(short) || r.frame.Samples != int64(samplesOf(short)) {
		t.Errorf("%d bytes, %+v", len(pcm), r.frame)
	}
	c.until("state", "listening")
	c.send(`{"type":"played","samples":1000,"generation":1}`)
	c.send(`{"type":"played","samples":1000000}`)
	s.chat.await(t, "send Hi!", "heard t 13 true")
	c.send(`{"type":"ping"}`)
	c.until("pong", "")
}

// An interruption flushes, stores what was heard, and stops the turn, in this order. Nothing of the old answer follows.
func TestInterrupt(t *testing.T) {
	s := serve(t, wire.Options{Engine: &voicetest.Engine{}})
	c := s.dial("")
	s.chat.write("t", answer, false)
	// The length of the first sentence is only estimated until the second one begins.
	for heard := 0; heard <= 2*samplesOf("This is the first sentence of the answer."); {
		r, _ := c.read()
		heard += len(r.audio)
	}
	c.send(`{"type":"interrupt","played":24000,"generation":7}`) // not a generation of this connection
	c.send(`{"type":"interrupt","played":24000,"generation":1}`)
	c.untilFlush()
	s.chat.await(t, "heard t 17 false", "stop t")
	s.chat.write("t", answer+" More.", true)
	c.send(`{"type":"text","text":"Next","key":"k"}`)
	s.chat.await(t, "heard t 17 false", "stop t", "send Next")
	s.chat.write("u", "Another answer.", true)
	if _, pcm := c.until("stream_done", ""); len(pcm) != 2*samplesOf("Another answer.") {
		t.Errorf("%d bytes after the flush", len(pcm))
	}
}

// What a person says interrupts the answer that runs. While others watch, or if the operator wants it, its turn continues.
func TestBargeIn(t *testing.T) {
	for name, tt := range map[string]struct {
		options wire.Options
		watched bool
		want    []string
	}{
		"alone":      {want: []string{"heard t 0 false", "stop t", "send Wait"}},
		"watched":    {watched: true, want: []string{"heard t 0 false", "send Wait"}},
		"configured": {options: wire.Options{KeepTurn: true}, want: []string{"heard t 0 false", "send Wait"}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.options.Engine = &voicetest.Engine{}
			s := serve(t, tt.options)
			s.chat.watched = tt.watched
			c := s.dial("")
			s.chat.write("t", answer, false)
			c.until("caption", "")
			c.send(`{"type":"played","samples":0}`)
			c.send(`{"type":"text","text":"Wait"}`)
			c.untilFlush()
			s.chat.await(t, tt.want...)
		})
	}
}

// If the running turn takes the message, the rest of its answer is spoken.
func TestSteered(t *testing.T) {
	s := serve(t, wire.Options{Engine: &voicetest.Engine{}, KeepTurn: true})
	s.chat.steers = "t"
	c := s.dial("")
	s.chat.write("t", "One sentence is here. ", false)
	c.until("caption", "")
	c.send(`{"type":"played","samples":0}`) // without a report, time that passes counts as heard
	c.send(`{"type":"text","text":"And?"}`)
	c.untilFlush()
	s.chat.await(t, "heard t 0 false", "send And?")
	c.until("state", "thinking")
	s.chat.write("t", "One sentence is here. It takes the message.", true)
	if _, pcm := c.until("stream_done", "t"); len(pcm) != 2*samplesOf("It takes the message.") {
		t.Errorf("%d bytes", len(pcm))
	}
}

// Speech becomes text, and the text a message.
func TestMicrophone(t *testing.T) {
	r := &recognizer{}
	s := serve(t, wire.Options{Recognizer: r})
	c := s.dial("")
	c.until("ready", "")
	c.until("error", "no_speech")
	c.sendAudio(make([]byte, 640)) // before the utterance: not heard
	c.send(`{"type":"start"}`)
	for range 5 {
		c.sendAudio(make([]byte, 640))
	}
	c.send(`{"type":"stop"}`)
	c.sendAudio(make([]byte, 640)) // after it
	if r, _ := c.until("transcript", ""); r.frame.Text != "listening" || r.frame.Final {
		t.Errorf("%+v", r.frame)
	}
	if r, _ := c.until("transcript", "3200 bytes"); !r.frame.Final || r.frame.Key == "" {
		t.Errorf("%+v", r.frame)
	}
	s.chat.await(t, "send 3200 bytes")
	c.send(`{"type":"start"}`)
	c.send(`{"type":"stop"}`)
	if r, _ := c.until("transcript", ""); !r.frame.Final || r.frame.Text != "" {
		t.Errorf("%+v", r.frame)
	}
	// A pause doesn't end the utterance.
	c.send(`{"type":"start"}`)
	c.sendAudio([]byte{12, 0})
	c.sendAudio(make([]byte, 98))
	c.send(`{"type":"stop"}`)
	c.until("transcript", "pause")
	c.until("transcript", "pause 100 bytes")
	s.chat.await(t, "send 3200 bytes", "send pause 100 bytes")
	// A recogniser that fails is replaced with the next utterance.
	c.send(`{"type":"start"}`)
	c.sendAudio([]byte{13, 0})
	c.until("error", "recognition_failed")
	c.send(`{"type":"start"}`)
	c.sendAudio(make([]byte, 642))
	c.send(`{"type":"stop"}`)
	c.until("transcript", "642 bytes")
	s.chat.await(t, "send 3200 bytes", "send pause 100 bytes", "send 642 bytes")
	s.stop()
	c.closed()
	if err := <-s.errs; err != nil {
		t.Error(err)
	}
	if r.open != 0 {
		t.Errorf("%d listeners are open", r.open)
	}
}

// Without a recogniser, or with one that can't be reached, the client gets to know it.
func TestNoRecognizer(t *testing.T) {
	s := serve(t, wire.Options{Engine: &voicetest.Engine{}})
	c := s.dial("")
	c.send(`{"type":"start"}`)
	c.send(`{"type":"stop"}`)
	c.until("error", "no_recognition")
	s = serve(t, wire.Options{Recognizer: &recognizer{listenErr: errDeaf}})
	c = s.dial("")
	c.send(`{"type":"start"}`)
	c.until("error", "recognition_failed")
}

// Invalid frames are reported. Frames of unknown types are ignored.
func TestInvalidFrames(t *testing.T) {
	s := serve(t, wire.Options{Engine: &voicetest.Engine{}})
	c := s.dial("")
	for _, frame := range []string{`{`, `{"type":"text","text":" "}`, `{"type":"text","text":"x","key":"` + strings.Repeat("k", 65) + `"}`} {
		c.send(frame)
		if r, _ := c.until("error", ""); r.frame.Code != "invalid" || r.frame.Message == "" || r.frame.Action == "" {
			t.Errorf("%s: %+v", frame, r.frame)
		}
	}
	c.send(`{"type":"future"}`)
	c.send(`{"type":"ping"}`)
	c.until("pong", "")
	c.sendAudio([]byte{1})
	if code, reason := c.closed(); code != websocket.StatusUnsupportedData || reason != "invalid" {
		t.Errorf("odd length: %d %s", code, reason)
	}
	c = s.dial("")
	c.send(`{"type":"text","text":"` + strings.Repeat("x", 64_000) + `"}`)
	if code, _ := c.closed(); code != websocket.StatusMessageTooBig {
		t.Errorf("too big: %d", code)
	}
}

// A microphone that is much faster than real time is refused, once for each utterance.
func TestTooFast(t *testing.T) {
	s := serve(t, wire.Options{Recognizer: &recognizer{}})
	c := s.dial("")
	c.send(`{"type":"start"}`)
	for range 20 {
		c.sendAudio(make([]byte, 32_000)) // 20 s at once
	}
	c.send(`{"type":"ping"}`)
	c.until("error", "too_fast")
	c.until("pong", "")
}

// A message that can't be sent is reported: a refusal in its own words, and other errors without details.
func TestNotSent(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{{&wire.Refusal{Message: "Too many messages.", Action: "Wait."}, "Too many messages."}, {errors.New("disk /dev/secret is full"), "Your message couldn't be stored."}} {
		s := serve(t, wire.Options{Engine: &voicetest.Engine{}})
		s.chat.sendErr = tt.err
		c := s.dial("")
		c.send(`{"type":"text","text":"x"}`)
		if r, _ := c.until("error", "not_sent"); r.frame.Message != tt.want || r.frame.Action == "" {
			t.Errorf("%+v", r.frame)
		}
	}
}

// The end of a connection has a code that says whether to come back, and what was heard is stored.
func TestEnds(t *testing.T) {
	start := func(t *testing.T, o wire.Options, query string) (*served, *client) {
		t.Helper()
		o.Engine = &voicetest.Engine{}
		s := serve(t, o)
		c := s.dial(query)
		c.until("ready", "")
		return s, c
	}
	check := func(t *testing.T, s *served, c *client, code websocket.StatusCode, reason string) {
		t.Helper()
		if gotCode, got := c.closed(); gotCode != code || got != reason {
			t.Errorf("closed with %d %q, want %d %q", gotCode, got, code, reason)
		}
		if err := <-s.errs; err != nil {
			t.Errorf("Serve returned %v", err)
		}
	}
	t.Run("restart", func(t *testing.T) {
		s, c := start(t, wire.Options{}, "")
		s.chat.write("t", answer, false)
		c.until("caption", "")
		c.send(`{"type":"played","samples":0}`) // without a report, time that passes counts as heard
		c.send(`{"type":"ping"}`)
		c.until("pong", "")
		s.stop()
		check(t, s, c, websocket.StatusServiceRestart, "")
		s.chat.await(t, "heard t 0 false")
	})
	t.Run("replaced", func(t *testing.T) {
		s, c := start(t, wire.Options{Connections: 1}, "listener=a")
		other := s.dial("listener=b")
		if code, reason := other.closed(); code != websocket.StatusTryAgainLater || reason != "busy" {
			t.Errorf("another listener: %d %s", code, reason)
		}
		<-s.errs
		newer := s.dial("listener=a")
		check(t, s, c, 4009, "replaced")
		newer.until("ready", "")
		newer.send(`{"type":"ping"}`)
		newer.until("pong", "")
		s.chat.mu.Lock()
		defer s.chat.mu.Unlock()
		if s.chat.followed != 2 {
			t.Errorf("followed %d times", s.chat.followed)
		}
	})
	t.Run("idle", func(t *testing.T) {
		s, c := start(t, wire.Options{Idle: 50 * time.Millisecond}, "")
		check(t, s, c, 4008, "idle")
	})
	t.Run("access lost", func(t *testing.T) {
		s, c := start(t, wire.Options{}, "")
		s.chat.lost <- errAccessLost
		check(t, s, c, websocket.StatusPolicyViolation, "")
	})
	t.Run("internal error", func(t *testing.T) {
		s, c := start(t, wire.Options{}, "")
		broken := errors.New("broken")
		s.chat.lost <- broken
		if code, _ := c.closed(); code != websocket.StatusInternalError {
			t.Errorf("closed with %d", code)
		}
		if err := <-s.errs; !errors.Is(err, broken) {
			t.Errorf("Serve returned %v", err)
		}
	})
	t.Run("client leaves", func(t *testing.T) {
		s, c := start(t, wire.Options{}, "")
		c.send(`{"type":"text","text":"Last words"}`)
		_ = c.socket.Close(websocket.StatusNormalClosure, "")
		if err := <-s.errs; err != nil {
			t.Error(err)
		}
		s.chat.await(t, "send Last words")
	})
}

// A client that comes back gets what it lacks.
func TestResume(t *testing.T) {
	s := serve(t, wire.Options{Engine: &voicetest.Engine{}})
	c := s.dial("after=t:42:2400")
	s.chat.write("t", answer, true)
	_, pcm := c.until("stream_done", "t")
	if want := 2 * (samplesOf(answer[42:]) - 2400); len(pcm) != want || s.chat.resumed != "t" {
		t.Errorf("%d bytes, not %d", len(pcm), want)
	}
}

func TestParseRequest(t *testing.T) {
	after := func(turn string, start int, samples int64) (r wire.Request) {
		r.After.Turn, r.After.Start, r.After.Samples = turn, start, samples
		return r
	}
	for query, want := range map[string]wire.Request{
		"":                                      {},
		"vad=client&language=de-DE&voice=a+b.c": {Voice: "a b.c", Language: "de-DE"},
		"vad=server":                            {DetectsSpeech: true},
		"after=t:1:2":                           after("t", 1, 2),
	} {
		values, _ := url.ParseQuery(query)
		if got, err := wire.ParseRequest(values); err != nil || got.Voice != want.Voice || got.Language != want.Language || got.DetectsSpeech != want.DetectsSpeech || got.After != want.After {
			t.Errorf("%s: %+v, %v", query, got, err)
		}
	}
	for _, query := range []string{"vad=x", "language=../x", "voice=/etc/passwd", "voice=-x", "after=t", "after=t:1", "after=t:a:1", "after=t:1:b", "after=:1:1", "after=t:-1:1", "after=t:1:-1", "after=t:1:1:1"} {
		values, _ := url.ParseQuery(query)
		if _, err := wire.ParseRequest(values); err == nil {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// The gateway finds utterances itself, and the person interrupts by speaking.
func TestServerDetectsSpeech(t *testing.T) {
	s := serve(t, wire.Options{Engine: &voicetest.Engine{}, Recognizer: &recognizer{}})
	c := s.dial("vad=server")
	s.chat.write("t", answer, false)
	c.until("caption", "")
	quiet, loud := make([]byte, 6400), make([]byte, 6400)
	for i := range len(loud) / 2 {
		binary.LittleEndian.PutUint16(loud[2*i:], uint16(int16(8000*(1-i%20/10*2))))
	}
	c.sendAudio(quiet)
	c.sendAudio(loud)
	c.untilFlush()
	for range 5 {
		c.sendAudio(quiet)
	}
	r, _ := c.until("transcript", "listening")
	for !r.frame.Final {
		r, _ = c.until("transcript", "")
	}
	if len(r.frame.Text) == 0 {
		t.Error("nothing was recognised")
	}
}

// latency is how long an interruption takes, from the client's frame to the last byte of old PCM that the client reads.
func BenchmarkInterrupt(b *testing.B) {
	s := serve(b, wire.Options{Engine: &voicetest.Engine{}})
	c := s.dial("")
	var total, worst time.Duration
	for range b.N {
		s.chat.write("t"+time.Now().String(), strings.Repeat(answer+" ", 20), true)
		c.until("caption", "")
		began := time.Now()
		c.send(`{"type":"interrupt","played":0}`)
		last := began
		for {
			r, code := c.read()
			if code != 0 {
				b.Fatal(code)
			}
			if len(r.audio) == 1 {
				break
			}
			if len(r.audio) > 1 {
				last = time.Now()
			}
		}
		took := last.Sub(began)
		total += took
		worst = max(worst, took)
	}
	b.ReportMetric(float64(total.Microseconds())/float64(b.N), "µs/interrupt")
	b.ReportMetric(float64(worst.Microseconds()), "µs/worst")
}
