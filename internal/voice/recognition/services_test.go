package recognition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/internal/voice"
	"github.com/leat-dev/leat/internal/voice/voicetest"
)

// services are the kinds that need a server.
var services = []string{"openai", "deepgram"}

// optionsFor returns the options of a service for the fake server.
func optionsFor(engine string, s *voicetest.Server) Options {
	base := s.URL
	if engine == "openai" {
		base += "/v1/"
	}
	return Options{Engine: engine, URL: base, Key: voicetest.Key}
}

// listen makes a recognizer and a listener, which are closed at the end of the test.
func listen(t testing.TB, o Options, language string) (voice.Listener, error) {
	t.Helper()
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.(io.Closer).Close() })
	l, err := r.Listen(t.Context(), language)
	if err == nil {
		t.Cleanup(func() { _ = l.Close() })
	}
	return l, err
}

// speech returns n samples of a tone for a microphone.
func speech(n int) []byte {
	tone := voicetest.Speech(strings.Repeat("x", n/(voice.MicrophoneRate/20)+1), voice.MicrophoneRate)
	return tone[:2*n]
}

// say writes n samples in frames of 20 ms, and ends the utterance.
func say(t testing.TB, l voice.Listener, n int) {
	t.Helper()
	for frame := range slices.Chunk(speech(n), 640) {
		if err := l.Write(frame); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.EndUtterance(); err != nil {
		t.Fatal(err)
	}
}

// finals returns the texts of n final results. An earlier end fails the test.
func finals(t testing.TB, l voice.Listener, n int) (texts []string) {
	t.Helper()
	for len(texts) < n {
		r, ok := <-l.Results()
		if !ok || r.Err != nil {
			t.Fatalf("after %q: %v", texts, r.Err)
		}
		if r.IsFinal {
			texts = append(texts, r.Text)
		}
	}
	return texts
}

// failureOf returns the failure that ends a listener, after other results. The channel must be closed then.
func failureOf(t testing.TB, l voice.Listener) error {
	t.Helper()
	for r := range l.Results() {
		if r.Err != nil {
			if next, ok := <-l.Results(); ok {
				t.Errorf("a result after the last: %+v", next)
			}
			return r.Err
		}
	}
	return nil
}

func TestUtterances(t *testing.T) {
	for _, engine := range services {
		s := voicetest.NewServer(t)
		l, err := listen(t, optionsFor(engine, s), "de-AT")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{16_000, 3_200, 40_000} {
			say(t, l, n)
			if got := finals(t, l, 1); got[0] != voicetest.Transcript(n) {
				t.Errorf("%s: %q, want %d samples", engine, got, n)
			}
		}
		want := voicetest.Request{Service: engine, Language: "de", Model: "gpt-4o-mini-transcribe", Audio: speech(16_000)}
		if engine == "deepgram" {
			want.Language, want.Model, want.Audio = "de-AT", "nova-3", nil
		}
		if got := s.Requests()[0]; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %+.200v, want %+.200v", engine, got, want)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if _, ok := <-l.Results(); ok {
			t.Errorf("%s: a result after Close", engine)
		}
		if err := l.Write(make([]byte, 2)); !errors.Is(err, errClosed) {
			t.Errorf("%s: a write after Close: %v", engine, err)
		}
		if err := l.EndUtterance(); !errors.Is(err, errClosed) {
			t.Errorf("%s: an end after Close: %v", engine, err)
		}
		_ = l.Close()
	}
}

// The utterances are written while an earlier one is transcribed.
func TestQueue(t *testing.T) {
	s := voicetest.NewServer(t)
	s.SetFault(voicetest.Fault{Delay: 10 * time.Millisecond})
	l, err := listen(t, optionsFor("openai", s), "")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for n := 2_000; n < 20_000; n += 2_000 {
		say(t, l, n)
		want = append(want, voicetest.Transcript(n))
	}
	if got := finals(t, l, len(want)); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := s.Requests()[0]; got.Language != "" {
		t.Errorf("the language %q was sent", got.Language)
	}
}

// Silence and sounds that are too short give an empty text, without a request.
func TestSilence(t *testing.T) {
	s := voicetest.NewServer(t)
	l, err := listen(t, optionsFor("openai", s), "")
	if err != nil {
		t.Fatal(err)
	}
	noise := bytes.Repeat([]byte{20, 0, 0xec, 0xff}, 16_000)
	for _, audio := range [][]byte{nil, make([]byte, 64_000), noise, speech(500)} {
		if err := errors.Join(l.Write(audio), l.EndUtterance()); err != nil {
			t.Fatal(err)
		}
	}
	if got := finals(t, l, 4); !slices.Equal(got, []string{"", "", "", ""}) || len(s.Requests()) != 0 {
		t.Errorf("%q after %d requests", got, len(s.Requests()))
	}
	if err := l.Write([]byte{1}); !errors.Is(err, errOdd) {
		t.Errorf("an odd length: %v", err)
	}
}

// An utterance without an end is cut at the limit, and nothing of it is lost.
func TestMaxUtterance(t *testing.T) {
	s := voicetest.NewServer(t)
	l, err := listen(t, optionsFor("openai", s), "")
	if err != nil {
		t.Fatal(err)
	}
	total := 2 * maxUtterance / time.Second * voice.MicrophoneRate
	samples, answered := 0, 0
	for part := range slices.Chunk(speech(int(total)), bytesPerSecond) {
		for { // the queue is shorter than the utterance
			waiting := l.(*listener).queue
			waiting.mu.Lock()
			room := maxQueued - waiting.bytes
			waiting.mu.Unlock()
			if room >= len(part) {
				break
			}
			runtime.Gosched()
		}
		if err := l.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	_ = l.EndUtterance()
	for _, text := range finals(t, l, 3) {
		n := 0
		_, _ = fmt.Sscanf(text, "%d samples", &n)
		if samples += n; n > 0 {
			answered++
		}
	}
	if samples != int(total) || answered < 2 {
		t.Errorf("%d samples in %d texts, want %d", samples, answered, total)
	}
}

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		fault  voicetest.Fault
		key    string
		reason voice.Reason
		status int
		text   string // in the error
		after  time.Duration
		only   string // engine
	}{
		"wrong key":         {key: "sk-other-0123456789", reason: voice.Credentials, status: 401, text: "check the key"},
		"no credit":         {fault: voicetest.Fault{Status: 402}, reason: voice.Quota, status: 402},
		"quota":             {fault: voicetest.Fault{Status: 429, Body: `{"error":{"message":"You exceeded","code":"insufficient_quota"}}`}, reason: voice.Quota, status: 429, text: "You exceeded"},
		"too many":          {fault: voicetest.Fault{Status: 429, RetryAfter: "7"}, reason: voice.RateLimit, status: 429, after: 7 * time.Second, text: "try again in 7s"},
		"invalid":           {fault: voicetest.Fault{Status: 400}, reason: voice.Rejected, status: 400, text: "Bad Request for [key]"},
		"server error":      {fault: voicetest.Fault{Status: 500}, reason: voice.Unavailable, status: 500},
		"redirect":          {fault: voicetest.Fault{Status: 307}, reason: voice.Rejected, status: 307},
		"no JSON":           {fault: voicetest.Fault{Body: "<html>"}, reason: voice.Format, status: 200, text: "no text", only: "openai"},
		"no text":           {fault: voicetest.Fault{Body: `{"txt":"x"}`}, reason: voice.Format, status: 200, text: "no text", only: "openai"},
		"idle":              {fault: voicetest.Fault{CloseReason: "NET-0001 no audio for " + voicetest.Key, After: 5}, reason: voice.Interrupted, text: "1011 NET-0001 no audio for [key]", only: "deepgram"},
		"error message":     {fault: voicetest.Fault{Message: `{"type":"Error","description":"no such model"}`, After: 5}, reason: voice.Rejected, text: "no such model", only: "deepgram"},
		"malformed message": {fault: voicetest.Fault{Message: `{"type":`, After: 5}, reason: voice.Format, text: "not JSON", only: "deepgram"},
		"cut":               {fault: voicetest.Fault{Reset: true, After: 5}, reason: voice.Interrupted},
		"cut at once":       {fault: voicetest.Fault{Reset: true}, reason: voice.Interrupted},
	} {
		t.Run(name, func(t *testing.T) {
			for _, engine := range services {
				if c.only != "" && c.only != engine {
					continue
				}
				s := voicetest.NewServer(t)
				s.SetFault(c.fault)
				o := optionsFor(engine, s)
				if c.key != "" {
					o.Key = c.key
				}
				l, err := listen(t, o, "")
				if err == nil {
					_ = l.Write(speech(16_000)) // the connection may have ended already
					_ = l.EndUtterance()
					err = failureOf(t, l)
					if after := l.Write(make([]byte, 2)); after != err {
						t.Errorf("%s: a write after %v returns %v", engine, err, after)
					}
				}
				f, ok := errors.AsType[*voice.Failure](err)
				if !ok || f.Reason != c.reason || f.Engine != engine || f.Status != c.status || f.RetryAfter != c.after {
					t.Errorf("%s: %#v (%v), want %s", engine, f, err, c.reason)
					continue
				}
				if text := err.Error(); !strings.Contains(text, c.text) || strings.Contains(text, o.Key) || strings.Contains(text, voicetest.Key) || !strings.HasSuffix(text, f.Advice()) {
					t.Errorf("%s: the error is %q", engine, text)
				}
			}
		})
	}
}

// A service that doesn't answer fails after the limit, and Close and the context end the wait at once.
func TestStall(t *testing.T) {
	for _, fault := range []voicetest.Fault{{Delay: time.Hour}, {Stall: true, After: 5}} {
		for _, engine := range services {
			s := voicetest.NewServer(t)
			s.SetFault(fault)
			o := optionsFor(engine, s)
			o.times = times{answer: 50 * time.Millisecond, ping: 50 * time.Millisecond}
			l, err := listen(t, o, "")
			if err == nil {
				say(t, l, 16_000)
				err = failureOf(t, l)
			}
			if f, ok := errors.AsType[*voice.Failure](err); !ok || !f.Temporary() {
				t.Errorf("%s: %v", engine, err)
			}
			if engine == "openai" { // the fake socket that doesn't read can't notice the end
				s.AwaitIdle()
			}
		}
	}
}

func TestEnd(t *testing.T) {
	enough := errors.New("enough")
	for _, engine := range services {
		s := voicetest.NewServer(t)
		s.SetFault(voicetest.Fault{Stall: true, After: 5})
		r, err := New(optionsFor(engine, s))
		if err != nil {
			t.Fatal(err)
		}
		for _, byContext := range []bool{false, true} {
			ctx, cancel := context.WithCancelCause(t.Context())
			l, err := r.Listen(ctx, "")
			if err != nil {
				t.Fatal(err)
			}
			say(t, l, 16_000)
			begin := time.Now()
			if byContext {
				cancel(enough)
				if err := failureOf(t, l); !errors.Is(err, enough) {
					t.Errorf("%s: %v", engine, err)
				}
			}
			_ = l.Close()
			if d := time.Since(begin); d > 5*time.Second {
				t.Errorf("%s: the end took %v", engine, d)
			}
			cancel(nil)
		}
		_ = r.(io.Closer).Close()
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(enough)
		if _, err := r.Listen(ctx, ""); !errors.Is(err, enough) {
			t.Errorf("%s: after the end of the context: %v", engine, err)
		}
	}
}

// A recognizer that takes no audio fails instead of using up the memory.
func TestOverflow(t *testing.T) {
	for _, engine := range services {
		s := voicetest.NewServer(t)
		s.SetFault(voicetest.Fault{Stall: true, After: 5})
		l, err := listen(t, optionsFor(engine, s), "")
		if err != nil {
			t.Fatal(err)
		}
		second := speech(16_000)
		written := 0
		for ; err == nil && written < 10_000; written++ {
			if err = l.Write(second); err == nil && written == 0 {
				err = l.EndUtterance()
			}
		}
		if !errors.Is(err, errOverflow) || written < maxQueued/bytesPerSecond {
			t.Errorf("%s: %v after %d s", engine, err, written)
		}
		if err := failureOf(t, l); !errors.Is(err, errOverflow) {
			t.Errorf("%s: the last result is %v", engine, err)
		}
	}
	q := newQueue()
	var err error
	for range maxEnds + 1 {
		err = q.end()
	}
	if !errors.Is(err, errOverflow) {
		t.Errorf("ends: %v", err)
	}
}

// A caller that takes no results can still close.
func TestNoReader(t *testing.T) {
	s := voicetest.NewServer(t)
	l, err := listen(t, optionsFor("deepgram", s), "")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 * maxResults {
		say(t, l, 3_200)
	}
	_ = l.Close()
	s.AwaitIdle()
}

func TestDeepgram(t *testing.T) {
	s := voicetest.NewServer(t)
	o := optionsFor("deepgram", s)
	o.times = times{keepAlive: 5 * time.Millisecond, finalize: 20 * time.Millisecond}
	l, err := listen(t, o, "")
	if err != nil {
		t.Fatal(err)
	}
	is := func(message string) func(voicetest.Request) bool {
		return func(r voicetest.Request) bool { return r.Text == message }
	}
	s.AwaitRequest(is("KeepAlive"))
	// A pause ends an utterance without EndUtterance. Before that come partial texts.
	if err := l.Write(speech(3_200)); err != nil {
		t.Fatal(err)
	}
	if r := <-l.Results(); r.IsFinal || r.Text != voicetest.Transcript(3_200) || r.Err != nil {
		t.Errorf("the first result is %+v", r)
	}
	if err := l.Write(make([]byte, 12_800)); err != nil {
		t.Fatal(err)
	}
	if r := <-l.Results(); !r.IsFinal || r.Text != voicetest.Transcript(3_200) {
		t.Errorf("after a pause: %+v", r)
	}
	// Deepgram doesn't answer a Finalize without audio.
	if err := l.EndUtterance(); err != nil {
		t.Fatal(err)
	}
	if r := <-l.Results(); !r.IsFinal || r.Text != "" || r.Err != nil {
		t.Errorf("an end without speech: %+v", r)
	}
	_ = l.Close()
	s.AwaitRequest(is("CloseStream"))
	s.AwaitIdle()
	if got := s.Requests()[0].Language; got != "multi" {
		t.Errorf("the language is %q", got)
	}
}

// A listener that has nothing to do ends with its context, in a bubble without other goroutines.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		begin := time.Now()
		if _, ok, err := q.take(t.Context(), time.Minute); ok || err != nil || time.Since(begin) != time.Minute {
			t.Errorf("%v, %v after %v", ok, err, time.Since(begin))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, _, err := q.take(ctx, 0); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Hour+time.Minute {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// The segments of Deepgram become utterances.
func TestSegments(t *testing.T) {
	message := func(text string, isFinal, isSpeechFinal, isFromFinalize bool) results {
		m := results{IsFinal: isFinal, IsSpeechFinal: isSpeechFinal, IsFromFinalize: isFromFinalize}
		m.Channel.Alternatives = append(m.Channel.Alternatives, struct {
			Transcript string `json:"transcript"`
		}{text})
		return m
	}
	var u utterance
	for i, c := range []struct {
		m       results
		isAwait bool
		want    string // "" for no result, with ! if it is final
	}{
		{m: message("", false, false, false)},
		{m: message("good", false, false, false), want: "good"},
		{m: message("good morning", true, false, false), want: "good morning"},
		{m: message("how", false, false, false), want: "good morning how"},
		{m: message("", true, false, false)},
		{m: message("how are you", true, true, false), want: "good morning how are you!"},
		{m: message("", true, true, false)},
		{m: message("", true, false, true), isAwait: true, want: "!"},
		{m: message("yes", true, false, false), want: "yes"},
		{m: message("", true, false, true), isAwait: true, want: "yes!"},
		{m: results{IsFinal: true}},
	} {
		u.isAwaited = u.isAwaited || c.isAwait
		r, ok := u.add(c.m)
		got := r.Text
		if r.IsFinal {
			got += "!"
		}
		if !ok {
			got = ""
		}
		if got != c.want {
			t.Errorf("message %d: %q, want %q", i, got, c.want)
		}
	}
}

func TestOptions(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"unknown":    {Options{Engine: "ear"}, `unknown recognizer "ear"; use openai, deepgram, pocketsphinx`},
		"no key":     {Options{Engine: "deepgram"}, "the API key is missing; DEEPGRAM_API_KEY"},
		"broken key": {Options{Engine: "openai", Key: "a\nb"}, "a character that keys don't have"},
		"password":   {Options{Engine: "openai", URL: "http://user:hush@host/v1"}, "invalid URL"},
		"socket":     {Options{Engine: "deepgram", URL: "wss://host"}, "invalid URL"},
		"language":   {Options{Engine: "deepgram", Key: "k", Language: "de_AT"}, `invalid language "de_AT"`},
		"local key":  {Options{Engine: "pocketsphinx", Key: "k"}, "has no URL, key or model"},
	} {
		if _, err := New(c.o); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := listen(t, Options{Engine: "openai", Key: "k"}, "de; x"); err == nil {
		t.Error("an invalid language was accepted")
	}
	o := Options{Engine: "openai", Key: "sk-secret"}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "options", o)
	if text := log.String() + fmt.Sprintf("%v %+v", o, &o); strings.Contains(text, "secret") {
		t.Errorf("the key is printed: %s", text)
	}
}
