package speech

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/internal/voice"
	"github.com/leat-dev/leat/internal/voice/voicetest"
)

const sentence = "Hello, this is one sentence."

// services are the kinds that need a server.
var services = []string{"openai", "elevenlabs", "cartesia", "deepgram"}

// optionsFor returns the options of a service for the fake server.
func optionsFor(engine string, s *voicetest.Server) Options {
	base := s.URL
	if engine == "openai" {
		base += "/v1/"
	}
	return Options{Engine: engine, URL: base, Key: voicetest.Key, stall: 30 * time.Second}
}

// newEngine makes an engine that is closed at the end of the test.
func newEngine(t testing.TB, o Options) voice.Engine {
	t.Helper()
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.(io.Closer).Close() })
	return e
}

// speak returns all audio of an utterance, and the error of Speak or of the reader. Each read must be even.
func speak(t testing.TB, e voice.Engine, u voice.Utterance) ([]byte, error) {
	t.Helper()
	r, err := e.Speak(t.Context(), u)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var audio []byte
	for buf := make([]byte, 961); ; {
		n, err := r.Read(buf)
		if n%2 != 0 {
			t.Fatalf("a read of %d bytes", n)
		}
		audio = append(audio, buf[:n]...)
		if err == io.EOF {
			return audio, nil
		}
		if err != nil {
			return audio, err
		}
	}
}

func TestServices(t *testing.T) {
	full := voice.Utterance{Text: "Grüße an «alle», \"wirklich\"\nalle!", Voice: "other/voice", Language: "de-AT"}
	for _, c := range []struct {
		engine  string
		options func(*Options)
		u       voice.Utterance
		want    voicetest.Request
	}{
		{"openai", nil, voice.Utterance{Text: sentence}, voicetest.Request{Text: sentence, Model: "gpt-4o-mini-tts", Voice: "alloy"}},
		{
			"openai", func(o *Options) { o.Model, o.Voice, o.Speed, o.Instructions = "kokoro", "af_sky", 1.5, "calm" },
			full,
			voicetest.Request{Text: full.Text, Model: "kokoro", Voice: full.Voice, Speed: 1.5, Instructions: "calm"},
		},
		{"elevenlabs", nil, voice.Utterance{Text: sentence}, voicetest.Request{Text: sentence, Model: "eleven_flash_v2_5", Voice: "JBFqnCBsd6RMkjVDRZzb"}},
		{
			"elevenlabs", func(o *Options) { o.Speed, o.Language = 1.2, "fr" },
			full,
			voicetest.Request{Text: full.Text, Model: "eleven_flash_v2_5", Voice: full.Voice, Speed: 1.2, Language: "de"},
		},
		{
			"elevenlabs", func(o *Options) { o.Model, o.Language = "eleven_multilingual_v2", "fr" },
			full,
			voicetest.Request{Text: full.Text, Model: "eleven_multilingual_v2", Voice: full.Voice},
		},
		{"cartesia", nil, voice.Utterance{Text: sentence}, voicetest.Request{Text: sentence, Model: "sonic-3", Voice: "694f9389-aac1-45b6-b726-9d9369183238"}},
		{
			"cartesia", func(o *Options) { o.Speed, o.Language, o.Voice = 0.6, "fr-FR", "configured" },
			voice.Utterance{Text: sentence},
			voicetest.Request{Text: sentence, Model: "sonic-3", Voice: "configured", Speed: 0.6, Language: "fr"},
		},
		{"deepgram", nil, voice.Utterance{Text: sentence}, voicetest.Request{Text: sentence, Model: "aura-2-thalia-en"}},
		{"deepgram", func(o *Options) { o.Voice = "aura-2-zeus-en" }, voice.Utterance{Text: sentence}, voicetest.Request{Text: sentence, Model: "aura-2-zeus-en"}},
	} {
		s := voicetest.NewServer(t)
		o := optionsFor(c.engine, s)
		if c.options != nil {
			c.options(&o)
		}
		audio, err := speak(t, newEngine(t, o), c.u)
		if err != nil || !bytes.Equal(audio, voicetest.Speech(c.u.Text, voice.SpeechRate)) {
			t.Errorf("%s: %d bytes, %v", c.engine, len(audio), err)
		}
		c.want.Service = c.engine
		if got := s.Requests(); len(got) != 1 || fmt.Sprint(got[0]) != fmt.Sprint(c.want) {
			t.Errorf("%s: requests %+v, want %+v", c.engine, got, c.want)
		}
	}
}

func TestFaults(t *testing.T) {
	whole := voicetest.Speech(sentence, voice.SpeechRate)
	for name, c := range map[string]struct {
		fault  voicetest.Fault
		key    string
		reason voice.Reason // empty if the audio is complete
		status int
		text   string        // in the error
		after  time.Duration // of RetryAfter
		length int           // of the audio before the error, in bytes; -1 for any
	}{
		"odd chunks":      {fault: voicetest.Fault{Chunk: 4_801}},
		"tiny chunks":     {fault: voicetest.Fault{Chunk: 777}},
		"slow":            {fault: voicetest.Fault{Chunk: 20_000, Delay: 5 * time.Millisecond, Pause: 2 * time.Millisecond}},
		"WAV":             {fault: voicetest.Fault{WAV: true, Chunk: 1_001}},
		"WAV with title":  {fault: voicetest.Fault{ExactWAV: true}},
		"wrong rate":      {fault: voicetest.Fault{Rate: 16_000, Chunk: 1_001}},
		"wrong WAV":       {fault: voicetest.Fault{Rate: 22_050, WAV: true}},
		"high WAV":        {fault: voicetest.Fault{Rate: 48_000, ExactWAV: true}},
		"rate of 100":     {fault: voicetest.Fault{Rate: 100}, reason: voice.Format, text: "100 Hz"},
		"text as rate":    {fault: voicetest.Fault{ContentType: "audio/pcm;rate=high"}, reason: voice.Format, text: `"high"`},
		"stereo":          {fault: voicetest.Fault{ContentType: "audio/pcm;rate=24000;channels=2"}, reason: voice.Format, text: "channels"},
		"stereo WAV":      {fault: voicetest.Fault{Audio: stereoWAV()}, reason: voice.Format, text: "2 channels"},
		"JSON as 200":     {fault: voicetest.Fault{Audio: []byte(`{"error":"out of luck"}`)}, reason: voice.Format, text: "JSON"},
		"web page":        {fault: voicetest.Fault{Audio: []byte("Welcome, please sign in"), ContentType: "text/html; charset=utf-8"}, reason: voice.Format, text: "text/html"},
		"MP3":             {fault: voicetest.Fault{Audio: append([]byte{0xff, 0xfb, 0x90, 0x64}, make([]byte, 400)...), ContentType: "audio/mpeg"}, reason: voice.Format, text: "MP3"},
		"MP3 with title":  {fault: voicetest.Fault{Audio: append([]byte("ID3\x04"), make([]byte, 400)...)}, reason: voice.Format, text: "MP3"},
		"Ogg":             {fault: voicetest.Fault{Audio: append([]byte("OggS"), make([]byte, 400)...)}, reason: voice.Format, text: "Ogg"},
		"no audio":        {fault: voicetest.Fault{Audio: []byte{}}, reason: voice.Format, text: "no audio"},
		"half a sample":   {fault: voicetest.Fault{Extra: []byte{1}}, reason: voice.Interrupted, length: len(whole)},
		"cut at once":     {fault: voicetest.Fault{Reset: true}, reason: voice.Interrupted},
		"cut":             {fault: voicetest.Fault{Reset: true, After: 20_001}, reason: voice.Interrupted, length: 20_000},
		"cut WAV":         {fault: voicetest.Fault{Reset: true, After: 20_044, WAV: true}, reason: voice.Interrupted, length: 20_000},
		"cut in header":   {fault: voicetest.Fault{Reset: true, After: 20, WAV: true}, reason: voice.Interrupted},
		"short WAV":       {fault: voicetest.Fault{Audio: shortWAV()}, reason: voice.Interrupted, length: 200},
		"no length":       {fault: voicetest.Fault{NoLength: true}, reason: voice.Format, status: 200, text: "neither a length nor chunks"},
		"wrong key":       {key: "sk-other-0123456789", reason: voice.Credentials, status: 401, text: "check the key"},
		"forbidden":       {fault: voicetest.Fault{Status: 403}, reason: voice.Credentials, status: 403},
		"no credit":       {fault: voicetest.Fault{Status: 402}, reason: voice.Quota, status: 402, text: "credit"},
		"quota at OpenAI": {fault: voicetest.Fault{Status: 429, Body: `{"error":{"message":"You exceeded","type":"insufficient_quota","code":"insufficient_quota"}}`}, reason: voice.Quota, status: 429, text: "You exceeded"},
		"quota at Eleven": {fault: voicetest.Fault{Status: 401, Body: `{"detail":{"status":"quota_exceeded","message":"0 credits"}}`}, reason: voice.Quota, status: 401, text: "0 credits"},
		"too many":        {fault: voicetest.Fault{Status: 429, RetryAfter: "7"}, reason: voice.RateLimit, status: 429, after: 7 * time.Second, text: "try again in 7s"},
		"too many ever":   {fault: voicetest.Fault{Status: 429, RetryAfter: "99999999"}, reason: voice.RateLimit, status: 429, after: 24 * time.Hour},
		"too many, quiet": {fault: voicetest.Fault{Status: 429}, reason: voice.RateLimit, status: 429},
		"unknown voice":   {fault: voicetest.Fault{Status: 404}, reason: voice.Rejected, status: 404, text: "Not Found for [key]"},
		"invalid":         {fault: voicetest.Fault{Status: 422, Body: `{"detail":[{"loc":["body","voice"],"msg":"no such voice"}]}`}, reason: voice.Rejected, status: 422, text: "no such voice"},
		"plain text":      {fault: voicetest.Fault{Status: 400, Body: "bad\nthing " + strings.Repeat("é", 500)}, reason: voice.Rejected, status: 400, text: "bad thing éé"},
		"redirect":        {fault: voicetest.Fault{Status: 307}, reason: voice.Rejected, status: 307},
		"server error":    {fault: voicetest.Fault{Status: 500}, reason: voice.Unavailable, status: 500},
		"overloaded":      {fault: voicetest.Fault{Status: 503, RetryAfter: "3"}, reason: voice.Unavailable, status: 503, after: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			for _, engine := range services {
				s := voicetest.NewServer(t)
				s.SetFault(c.fault)
				o := optionsFor(engine, s)
				if c.key != "" {
					o.Key = c.key
				}
				audio, err := speak(t, newEngine(t, o), voice.Utterance{Text: sentence})
				if c.reason == "" {
					// A few bytes of another rate may be rounded; tones are compared in the tests of package pcm.
					if err != nil || len(audio) != len(whole) {
						t.Errorf("%s: %d bytes of %d, %v", engine, len(audio), len(whole), err)
					}
					if c.fault.Rate == 0 && !bytes.Equal(audio, whole) {
						t.Errorf("%s: other audio", engine)
					}
					continue
				}
				f, ok := errors.AsType[*voice.Failure](err)
				if !ok || f.Reason != c.reason || f.Engine != engine || f.Status != c.status || f.RetryAfter != c.after {
					t.Errorf("%s: %#v (%v), want %s", engine, f, err, c.reason)
					continue
				}
				if text := err.Error(); !strings.Contains(text, c.text) || strings.Contains(text, o.Key) || strings.Contains(text, voicetest.Key) || len(text) > 600 || !strings.HasSuffix(text, f.Advice()) {
					t.Errorf("%s: the error is %q", engine, text)
				}
				if c.length >= 0 && (len(audio) != c.length || !bytes.HasPrefix(append(whole, make([]byte, 200)...), audio) && c.length != 200) {
					t.Errorf("%s: %d bytes before the error, want %d", engine, len(audio), c.length)
				}
				s.AwaitIdle()
			}
		})
	}
}

// stereoWAV is a file with two channels.
func stereoWAV() []byte {
	return []byte("RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x02\x00\xc0\x5d\x00\x00\x00\x77\x01\x00\x04\x00\x10\x00data\x08\x00\x00\x0012345678")
}

// shortWAV announces 400 bytes and has 200.
func shortWAV() []byte {
	return append([]byte("RIFF\xb4\x01\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\xc0\x5d\x00\x00\x80\xbb\x00\x00\x02\x00\x10\x00data\x90\x01\x00\x00"), make([]byte, 200)...)
}

// A service that stops sending fails after the limit, before and after its first byte.
func TestStall(t *testing.T) {
	for name, fault := range map[string]voicetest.Fault{
		"before the header": {Delay: time.Hour},
		"before the audio":  {Stall: true},
		"in a WAV header":   {Stall: true, WAV: true, After: 30},
		"in the middle":     {Stall: true, After: 10_001},
	} {
		for _, engine := range services {
			s := voicetest.NewServer(t)
			s.SetFault(fault)
			o := optionsFor(engine, s)
			o.stall = 60 * time.Millisecond
			audio, err := speak(t, newEngine(t, o), voice.Utterance{Text: sentence})
			f, ok := errors.AsType[*voice.Failure](err)
			if !ok || f.Reason != voice.Unavailable || !errors.Is(err, errStalled) || !f.Temporary() {
				t.Errorf("%s, %s: %v", engine, name, err)
			}
			// On a busy machine the limit may pass earlier.
			if want := fault.After &^ 1; len(audio) > want {
				t.Errorf("%s, %s: %d bytes, want at most %d", engine, name, len(audio), want)
			}
			s.AwaitIdle()
		}
	}
}

// The limit counts only while a reader waits: a listener takes audio at the speed at which it is heard.
func TestStallLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		body := newBuffer(1 << 10)
		defer context.AfterFunc(ctx, func() { body.abort(errClosed) })()
		src := &source{ctx: ctx, cancel: cancel, body: io.NopCloser(body), stall: stallLimit}
		_, _ = body.Write([]byte{1, 2, 3, 4})
		for range 4 {
			time.Sleep(time.Hour)
			if _, err := src.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		if _, err := src.Read(make([]byte, 1)); !errors.Is(err, errStalled) || time.Since(begin) != stallLimit {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// Close and the end of the context end the request, at any moment.
func TestEnd(t *testing.T) {
	enough := errors.New("enough")
	for _, engine := range services {
		for name, fault := range map[string]voicetest.Fault{"before the header": {Delay: time.Hour}, "in the middle": {Stall: true, After: 9_600}} {
			for _, byContext := range []bool{true, false} {
				s := voicetest.NewServer(t)
				s.SetFault(fault)
				e := newEngine(t, optionsFor(engine, s))
				ctx, cancel := context.WithCancelCause(t.Context())
				if fault.Delay > 0 {
					time.AfterFunc(10*time.Millisecond, func() { cancel(enough) })
					if _, err := e.Speak(ctx, voice.Utterance{Text: sentence}); !errors.Is(err, enough) {
						t.Errorf("%s, %s: %v", engine, name, err)
					}
					s.AwaitIdle()
					continue
				}
				r, err := e.Speak(ctx, voice.Utterance{Text: sentence})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(r, make([]byte, 9_600)); err != nil {
					t.Fatal(err)
				}
				pending := make(chan error)
				go func() {
					_, err := r.Read(make([]byte, 100))
					pending <- err
				}()
				want := errClosed
				if byContext {
					want = enough
					cancel(enough)
				} else {
					_ = r.Close()
				}
				if err := <-pending; !errors.Is(err, want) {
					t.Errorf("%s: a pending read returns %v, want %v", engine, err, want)
				}
				if _, err := r.Read(make([]byte, 100)); !errors.Is(err, want) {
					t.Errorf("%s: a later read returns %v", engine, err)
				}
				if _, ok := errors.AsType[*voice.Failure](err); ok {
					t.Errorf("%s: an end that was asked for is a failure", engine)
				}
				_ = r.Close()
				_ = r.Close()
				cancel(nil)
				s.AwaitIdle()
			}
		}
	}
}

// The error of a server that can't be reached leaves out the address, which may contain a secret.
func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + l.Addr().String() + "/secret-path"
	_ = l.Close()
	_, err = speak(t, newEngine(t, Options{Engine: "openai", URL: base}), voice.Utterance{Text: sentence})
	if f, ok := errors.AsType[*voice.Failure](err); !ok || f.Reason != voice.Unavailable || strings.Contains(err.Error(), "secret-path") {
		t.Errorf("%v", err)
	}
}

func TestSilence(t *testing.T) {
	s := voicetest.NewServer(t)
	e := newEngine(t, optionsFor("openai", s))
	if audio, err := speak(t, e, voice.Utterance{Text: " \n\t"}); err != nil || len(audio) != 0 || len(s.Requests()) != 0 {
		t.Errorf("%d bytes, %v, %d requests", len(audio), err, len(s.Requests()))
	}
	if _, err := speak(t, e, voice.Utterance{Text: "x", Language: "de; rm"}); err == nil {
		t.Error("an invalid language was accepted")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Speak(ctx, voice.Utterance{Text: "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}

func TestOptions(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"unknown":      {Options{Engine: "festival"}, `unknown engine "festival"; use espeak-ng, openai, elevenlabs, cartesia, deepgram`},
		"no key":       {Options{Engine: "cartesia"}, "the API key is missing; CARTESIA_API_KEY"},
		"broken key":   {Options{Engine: "openai", Key: "a\nb"}, "a character that keys don't have"},
		"file":         {Options{Engine: "openai", URL: "file:///etc/passwd"}, "invalid URL"},
		"password":     {Options{Engine: "openai", URL: "http://user:hush@host/v1"}, "invalid URL"},
		"query":        {Options{Engine: "openai", URL: "http://host/v1?key=hush"}, "invalid URL"},
		"no host":      {Options{Engine: "openai", URL: "http:///v1"}, "invalid URL"},
		"fast":         {Options{Engine: "elevenlabs", Key: "k", Speed: 3}, "invalid speed 3; use 0.7 to 1.2"},
		"negative":     {Options{Engine: "openai", Key: "k", Speed: -1}, "invalid speed -1"},
		"speed":        {Options{Engine: "deepgram", Key: "k", Speed: 1}, "the speed can't be set"},
		"instructions": {Options{Engine: "cartesia", Key: "k", Instructions: "calm"}, "instructions need the engine openai"},
		"language":     {Options{Engine: "cartesia", Key: "k", Language: "de_AT!"}, `invalid language "de_AT!"`},
		"local URL":    {Options{Engine: "espeak-ng", URL: "http://host"}, "the engine has no URL"},
	} {
		_, err := New(c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	o := Options{Engine: "openai", Key: "sk-secret"}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "options", o)
	if text := log.String() + fmt.Sprintf("%v %+v", o, &o); strings.Contains(text, "secret") {
		t.Errorf("the key is printed: %s", text)
	}
	for _, k := range Kinds() {
		if k.Name == "" || k.Help == "" || (k.URL == "") != (k.KeyVariable == "") || k.make == nil {
			t.Errorf("incomplete kind %+v", k)
		}
	}
}

// FuzzOpen checks that no answer makes the decoder panic or return an odd length.
func FuzzOpen(f *testing.F) {
	f.Add(stereoWAV(), "audio/wav")
	f.Add(shortWAV(), "")
	f.Add([]byte("\x01\x02\x03"), "audio/pcm; rate=16000")
	f.Fuzz(func(t *testing.T, answer []byte, contentType string) {
		d := &decoder{src: bytes.NewReader(answer), contentType: contentType}
		total := 0
		for buf := make([]byte, 64); ; {
			n, err := d.Read(buf)
			if total += n; n%2 != 0 {
				t.Fatalf("a read of %d bytes", n)
			}
			if err != nil {
				break
			}
		}
		if total > 2*len(answer)*(voice.SpeechRate/4_000)+2 {
			t.Fatalf("%d bytes became %d", len(answer), total)
		}
	})
}
