package native_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	httpagent "github.com/leat-dev/leat/agent/http"
	"github.com/leat-dev/leat/dialect/elizaactions"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/transcript"
)

// asyncAgent answers 202 and keeps the inputs, for the test to push the turns.
type asyncAgent struct {
	asked   chan agent.Input
	stopped chan string // turns
}

// newAsyncAgent returns a harness and its agent, which is asynchronous.
func newAsyncAgent(t *testing.T) (*harness, *asyncAgent) {
	t.Helper()
	o := &asyncAgent{make(chan agent.Input, 8), make(chan string, 8)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /chat", func(w http.ResponseWriter, r *http.Request) {
		var in agent.Input
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusAccepted)
		o.asked <- in
	})
	mux.HandleFunc("POST /stop", func(_ http.ResponseWriter, r *http.Request) {
		var in agent.Input
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		o.stopped <- in.Turn
	})
	ts := httptest.NewServer(mux)
	a, err := httpagent.New(httpagent.Config{URL: ts.URL + "/chat", Stop: ts.URL + "/stop", Dialect: elizaactions.Dialect()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); ts.Close() })
	var h *harness
	opt := options{agent: a}
	opt.server.Producer = func(ctx context.Context, token string) (string, error) { return h.pushes.TurnOf(ctx, token) }
	h = newHarness(t, opt)
	return h, o
}

// bring makes an ingest request with the token of a turn.
func (h *harness) bring(method string, in agent.Input, body io.Reader, header ...string) *http.Response {
	h.t.Helper()
	path, ok := strings.CutPrefix(in.Ingest.URL, "http://gateway")
	if !ok {
		h.t.Fatalf("the ingest URL is %s", in.Ingest.URL)
	}
	return h.open(method, path, body, append(header, "Authorization", "Bearer "+in.Ingest.Token)...)
}

func lastLine(t *testing.T, res *http.Response) (end struct {
	Offset         int64
	Ended          bool
	Outcome, Error string
},
) {
	t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	if err := json.Unmarshal(lines[len(lines)-1], &end); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return end
}

// views follows a turn to its end and returns what a reader that keeps up sees.
func (h *harness) views(conversation, turn string) agenttest.Playback {
	h.t.Helper()
	f, err := h.gw.Feed(h.t.Context(), admin, conversation)
	if err != nil {
		h.t.Fatal(err)
	}
	defer f.Release()
	var got agenttest.Playback
	for ended := false; !ended; {
		changed := f.Notify()
		f.View(func(t *transcript.Transcript) {
			got.Views = append(got.Views, t.Visible(turn))
			if tr := t.Turn(turn); tr != nil && tr.State == transcript.TurnEnded {
				ended = true
				got.Snapshots = []agenttest.Snapshot{{Name: "live", Visible: t.Visible(turn), History: t.History(turn)}}
			}
		})
		if !ended {
			select {
			case <-changed:
			case <-h.t.Context().Done():
				h.t.Fatal("the turn never ended")
			}
		}
	}
	return got
}

// The callback cases, with an agent that answers 202 and pushes the stream with the turn's token.
func TestAsyncCallbacks(t *testing.T) {
	h, o := newAsyncAgent(t)
	agenttest.Callbacks(t, func(t *testing.T, s agenttest.Script) agenttest.Playback {
		h := *h
		h.t = t
		c := h.create()
		turn := h.send(c, "go").Turn
		in := <-o.asked
		r, w := io.Pipe()
		played := make(chan agenttest.Playback, 1)
		go func() { played <- h.views(c, turn) }()
		go func() {
			for _, line := range s.Actions(t) {
				// In two halves, because the result must not depend on how the bytes are split.
				for _, half := range [][]byte{line[:len(line)/2], line[len(line)/2:]} {
					if _, err := w.Write(half); err != nil {
						return // the stream has ended
					}
				}
			}
			_ = w.Close()
		}()
		if end := lastLine(t, h.bring(http.MethodPatch, in, r, "Upload-Offset", "0")); !end.Ended {
			t.Errorf("the last line: %+v", end)
		}
		return <-played
	})
}

// A push with the turn's token can be interrupted and resumed. After the turn's end, its producer gets that end.
func TestAsyncResumed(t *testing.T) {
	h, o := newAsyncAgent(t)
	c := h.create()
	turn := h.send(c, "go").Turn
	in := <-o.asked
	body := `{"type":"chunk","text":"one "}` + "\n" + `{"type":"chunk","text":"two"}` + "\n" + `{"type":"done"}` + "\n"
	at := 40
	res := h.bring(http.MethodPatch, in, strings.NewReader(body[:at]), "Upload-Offset", "0")
	if end := lastLine(t, res); end.Ended || res.StatusCode != http.StatusOK {
		t.Fatalf("%d %+v", res.StatusCode, end)
	}
	res = h.bring(http.MethodHead, in, nil)
	offset := 0
	if _, err := fmt.Sscan(res.Header.Get("Upload-Offset"), &offset); err != nil || offset == 0 || offset > at {
		t.Fatalf("it resumes at %q", res.Header.Get("Upload-Offset"))
	}
	if end := lastLine(t, h.bring(http.MethodPatch, in, strings.NewReader(body[offset:]), "Upload-Offset", fmt.Sprint(offset))); end.Outcome != "completed" {
		t.Fatalf("%+v", end)
	}
	if got := h.ended(c, turn); got.Outcome != event.Completed {
		t.Errorf("the turn ended as %s", got.Outcome)
	}
	if got := h.bring(http.MethodHead, in, nil).Header.Get("Leat-Turn-State"); got != "ended" {
		t.Errorf("its state is %q", got)
	}
	if res := h.bring(http.MethodPatch, in, strings.NewReader(body), "Upload-Offset", "0"); res.StatusCode != http.StatusConflict {
		t.Errorf("after its end: %d", res.StatusCode)
	}
}

// A stop ends the producer's connection and calls the stop URL.
func TestAsyncStopped(t *testing.T) {
	h, o := newAsyncAgent(t)
	c := h.create()
	turn := h.send(c, "go").Turn
	in := <-o.asked
	r, w := io.Pipe()
	defer w.Close()
	go func() {
		_, _ = w.Write([]byte(`{"type":"chunk","text":"one "}` + "\n"))
		h.untilVisible(c, turn, "one ")
		if _, err := h.gw.Do(t.Context(), admin, c, gateway.Command{Type: gateway.CommandStop, Turn: turn}); err != nil {
			t.Error(err)
		}
	}()
	if end := lastLine(t, h.bring(http.MethodPatch, in, r, "Upload-Offset", "0")); end.Outcome != "cancelled" {
		t.Errorf("%+v", end)
	}
	if got := <-o.stopped; got != turn {
		t.Errorf("the stop URL was called for turn %s", got)
	}
}

func (h *harness) untilVisible(conversation, turn, text string) {
	f, err := h.gw.Feed(h.t.Context(), admin, conversation)
	if err != nil {
		h.t.Error(err)
		return
	}
	defer f.Release()
	for {
		changed, there := f.Notify(), false
		f.View(func(t *transcript.Transcript) { there = t.Visible(turn) == text })
		if there {
			return
		}
		select {
		case <-changed:
		case <-h.t.Context().Done():
			return
		}
	}
}

// The token of a turn is valid only for that turn's ingest.
func TestTurnTokenScope(t *testing.T) {
	h, o := newAsyncAgent(t)
	c := h.create()
	turn := h.send(c, "go").Turn
	in := <-o.asked
	other := h.create()
	foreign := h.send(other, "go").Turn
	<-o.asked
	values := strings.NewReplacer("{id}", c, "{turn}", turn, "{conversation}", c)
	for _, rt := range h.srv.Routes() {
		if rt.Producer {
			for _, id := range []string{foreign, "none"} {
				in := in
				in.Ingest = &agent.Ingest{URL: "http://gateway" + strings.NewReplacer("{turn}", id).Replace(rt.Pattern), Token: in.Ingest.Token}
				if res := h.bring(rt.Method, in, strings.NewReader("{}\n"), "Upload-Offset", "0"); res.StatusCode != http.StatusNotFound {
					t.Errorf("%s %s of another turn: %d", rt.Method, rt.Pattern, res.StatusCode)
				}
			}
			continue
		}
		res := h.open(rt.Method, values.Replace(rt.Pattern), strings.NewReader("{}"), "Authorization", "Bearer "+in.Ingest.Token)
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != http.StatusUnauthorized && !openRoute(rt.Pattern) || bytes.Contains(b, []byte(c)) {
			t.Errorf("%s %s: %d %s", rt.Method, rt.Pattern, res.StatusCode, b)
		}
	}
}

// openRoute reports whether a route needs no authentication.
func openRoute(pattern string) bool {
	return strings.HasPrefix(pattern, "/api/auth/session") || pattern == "/api/session"
}
