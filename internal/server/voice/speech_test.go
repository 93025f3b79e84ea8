package voice_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	surface "github.com/leat-dev/leat/internal/server/voice"
	"github.com/leat-dev/leat/internal/voice"
	"github.com/leat-dev/leat/internal/voice/pcm"
	"github.com/leat-dev/leat/internal/voice/voicetest"
	"github.com/leat-dev/leat/transcript"
)

// inject adds an answer to the conversation.
func (h *harness) inject(id, text string) {
	h.t.Helper()
	if _, err := h.gw.Do(h.t.Context(), gateway.Principal{Admin: true}, h.id, gateway.Command{
		Type: gateway.CommandInject, Message: &gateway.CommandMessage{ID: id, Role: event.Assistant, Text: text},
	}); err != nil {
		h.t.Fatal(err)
	}
}

// answer is the response to a request for speech.
type answer struct {
	status int
	header http.Header
	body   []byte
	reason string
}

// read asks for a piece of a message.
func (h *harness) read(p gateway.Principal, message, query string) answer {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, fmt.Sprintf("%s/api/conversations/%s/messages/%s/speech%s", h.ts.URL, h.id, message, query), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+h.token(p, time.Hour))
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	a := answer{status: res.StatusCode, header: res.Header}
	if a.body, err = io.ReadAll(res.Body); err != nil {
		h.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		var refusal struct{ Reason string }
		if err := json.Unmarshal(a.body, &refusal); err != nil {
			h.t.Fatalf("%s: %v", a.body, err)
		}
		a.reason = refusal.Reason
	}
	return a
}

func newReading(t *testing.T, engine voice.Engine) *harness {
	t.Helper()
	h := newHarness(t)
	surface.RegisterSpeech(h.srv, h.gw, surface.Speech{Engine: engine, Voice: "anna"})
	return h
}

// The pieces of an answer are WAV files. Together they have the whole audio of its text, in order.
func TestSpeech(t *testing.T) {
	engine := &voicetest.Engine{}
	h := newReading(t, engine)
	h.inject("m", "The *first* sentence is here. "+strings.Repeat("Another one of them follows it and is longer. ", 3)+"\n\n```go\nfunc main() {}\n```\n")
	count, samples := 1, 0
	for n := 0; n < count; n++ {
		a := h.read(alice, "m", fmt.Sprintf("?piece=%d", n))
		if a.status != http.StatusOK || a.header.Get("Content-Type") != "audio/wav" {
			t.Fatalf("piece %d: %d %s", n, a.status, a.body)
		}
		if _, err := fmt.Sscan(a.header.Get("Leat-Speech-Pieces"), &count); err != nil || count < 2 {
			t.Fatalf("%q pieces", a.header.Get("Leat-Speech-Pieces"))
		}
		body := bytes.NewReader(a.body)
		head, err := pcm.ReadHeader(body)
		if err != nil {
			t.Fatal(err)
		}
		if head.Rate != voice.SpeechRate || head.Size != int64(body.Len()) {
			t.Errorf("piece %d: header %+v before %d bytes", n, head, body.Len())
		}
		samples += body.Len() / 2
	}
	want := 0
	for _, u := range engine.Utterances() {
		want += utf8.RuneCountInString(u.Text) * voicetest.SamplesPerRune
		if strings.ContainsAny(u.Text, "*`") || u.Voice != "anna" {
			t.Errorf("utterance %+v", u)
		}
	}
	if samples != want || len(engine.Utterances()) != count {
		t.Errorf("%d samples of %d pieces, want %d of %d", samples, count, want, len(engine.Utterances()))
	}
}

func TestSpeechRefusals(t *testing.T) {
	h := newReading(t, &voicetest.Engine{})
	h.inject("m", "A sentence that can be said.")
	h.inject("signs", "*** 🎉 …")
	for _, c := range []struct {
		name, message, query string
		by                   gateway.Principal
		status               int
		reason               string
	}{
		{"a user without access", "m", "", bob, http.StatusNotFound, "not_found"},
		{"an unknown message", "none", "", alice, http.StatusNotFound, "not_found"},
		{"a piece behind the end", "m", "?piece=1", alice, http.StatusNotFound, "not_found"},
		{"an invalid number of a piece", "m", "?piece=x", alice, http.StatusBadRequest, "invalid"},
		{"a negative piece", "m", "?piece=-1", alice, http.StatusBadRequest, "invalid"},
		{"nothing to say", "signs", "", alice, http.StatusUnprocessableEntity, "no_text"},
	} {
		if a := h.read(c.by, c.message, c.query); a.status != c.status || a.reason != c.reason {
			t.Errorf("%s: %d %q, want %d %q", c.name, a.status, a.reason, c.status, c.reason)
		}
	}
}

// An engine that fails, even in the middle of its audio, is an error of the request, whose text has no details of the engine.
func TestSpeechEngineFails(t *testing.T) {
	cause := errors.New("the key sk-secret was refused")
	for name, after := range map[string]int{"at once": 0, "in the middle": 100} {
		t.Run(name, func(t *testing.T) {
			h := newReading(t, &voicetest.Engine{Fail: func(int) (int, error) { return after, cause }})
			h.inject("m", "A sentence that can be said.")
			if a := h.read(alice, "m", ""); a.status != http.StatusBadGateway || a.reason != "speech_failed" || bytes.Contains(a.body, []byte("secret")) {
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
}

func TestSpeechWithoutEngine(t *testing.T) {
	h := newReading(t, nil)
	h.inject("m", "A sentence.")
	if a := h.read(alice, "m", ""); a.status != http.StatusNotImplemented || a.reason != "no_speech" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := h.read(bob, "m", ""); a.status != http.StatusNotFound {
		t.Errorf("a user without access: %d", a.status)
	}
}

// A message that still grows isn't read aloud, because its pieces could change.
func TestSpeechOfGrowingMessage(t *testing.T) {
	h := newReading(t, &voicetest.Engine{})
	c := h.client("")
	if _, err := h.gw.Do(t.Context(), alice, h.id, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: "hello"}}); err != nil {
		t.Fatal(err)
	}
	h.agent.texts <- "A first sentence that is long enough. And"
	c.until("speaking")
	f, err := h.gw.Feed(t.Context(), alice, h.id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	var id string
	f.View(func(t *transcript.Transcript) { id = t.Messages[len(t.Messages)-1].ID })
	if a := h.read(alice, id, ""); a.status != http.StatusConflict || a.reason != gateway.ReasonUnfinished {
		t.Errorf("%d %s", a.status, a.body)
	}
	h.agent.texts <- ""
	c.until("stream_done")
	if a := h.read(alice, id, ""); a.status != http.StatusOK {
		t.Errorf("when it is complete: %d %s", a.status, a.body)
	}
}
