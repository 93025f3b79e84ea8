// Faults of an upstream that every kind of agent must survive.

package agenttest

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

// Upstream describes a fake server of one protocol that answers with server-sent events. [Faults] makes it fail.
type Upstream struct {
	// New makes an agent with the server at url as its upstream.
	New func(t *testing.T, url string) agent.Agent
	// Accept checks a request as strictly as the real server does. It returns true if the request starts an answer, which Faults then
	// writes. For any other request, and for one that it rejects, it writes the response and returns false.
	Accept func(t *testing.T, w http.ResponseWriter, r *http.Request) bool
	// Frames are a valid answer, each frame with the blank line at its end. The last one ends the turn, and only that one does.
	Frames []string
	// Visible is the visible text of Frames.
	Visible string
	// KeepAlive are frames that only keep the connection open, each with its blank line. They must not count as progress.
	KeepAlive []string
	// Rejoin is set if the protocol can resume a broken stream. If the request resumes a run, Rejoin writes the rest of Frames and
	// returns true; otherwise it returns false, and Accept gets the request.
	Rejoin func(t *testing.T, w http.ResponseWriter, r *http.Request) bool
}

// Faults runs the agent against each fault, in a subtest. It demands that
//   - the answer is complete, however it is split into reads;
//   - a request that failed before the answer is retried, but not after the answer has started;
//   - a broken answer is resumed, or fails the turn as cut short: it never looks complete;
//   - comments, keep-alives and incomplete frames don't count as progress;
//   - the request is canceled when the turn ends.
//
// Each subtest starts its own server and agent, and plays one turn with the input in. The subtests that
// wait for retries or for the limit on silence take up to a few seconds in real time, because the connections
// are real ones; those without a server run on a fake clock.
func Faults(t *testing.T, u Upstream, in agent.Input) {
	answer := strings.Join(u.Frames, "")
	body := strings.Join(u.Frames[:len(u.Frames)-1], "")
	last := u.Frames[len(u.Frames)-1]

	pieces := func(texts ...string) func(*testing.T, http.ResponseWriter) {
		return func(t *testing.T, w http.ResponseWriter) {
			for _, text := range texts {
				write(t, w, text)
			}
		}
	}
	good := pieces(answer)
	t.Run("good", func(t *testing.T) { u.play(t, in, u.Visible, "", good) })
	t.Run("the last frame twice, and frames after it", func(t *testing.T) { u.play(t, in, u.Visible, "", pieces(answer+last+answer)) })
	t.Run("single bytes", func(t *testing.T) { u.play(t, in, u.Visible, "", pieces(splitBytes(answer)...)) })
	t.Run("comments", func(t *testing.T) { u.play(t, in, u.Visible, "", pieces(": hi\n\n"+body+": hi\n\n"+last)) })
	failFirst := func(fault func(http.ResponseWriter)) func(*testing.T, http.ResponseWriter) {
		var calls atomic.Int64
		return func(t *testing.T, w http.ResponseWriter) {
			if calls.Add(1) == 1 {
				fault(w)
				return
			}
			good(t, w)
		}
	}
	// They run at the same time, since each waits before it retries.
	transient := map[string]func(http.ResponseWriter){
		"429 without a hint": func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) },
		"429 with a hint": func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		"500":                    func(w http.ResponseWriter) { http.Error(w, "no", http.StatusInternalServerError) },
		"503":                    func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		"reset before an answer": reset,
	}
	t.Run("retried", func(t *testing.T) {
		var group sync.WaitGroup
		for name, fault := range transient {
			group.Go(func() {
				t.Logf("after %s", name)
				u.play(t, in, u.Visible, "", failFirst(fault))
			})
		}
		group.Wait()
	})
	for name, tt := range map[string]struct {
		code  string
		fault func(*testing.T, http.ResponseWriter)
	}{
		"401":        {"agent_status", func(_ *testing.T, w http.ResponseWriter) { http.Error(w, "no", http.StatusUnauthorized) }},
		"400":        {"agent_status", func(_ *testing.T, w http.ResponseWriter) { http.Error(w, "no", http.StatusBadRequest) }},
		"a redirect": {"agent_status", func(_ *testing.T, w http.ResponseWriter) { w.WriteHeader(http.StatusFound) }},
		"a page": {"agent_answer", func(t *testing.T, w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html")
			write(t, w, "<html>")
		}},
		"garbage": {"invalid", pieces(u.Frames[0] + "data: {\"type\n\n")},
	} {
		t.Run(name, func(t *testing.T) { u.play(t, in, "", tt.code, tt.fault) })
	}
	t.Run("connection refused", func(t *testing.T) { u.testRefused(t, in) })
	t.Run("connection refused, with a short limit on silence", func(t *testing.T) { u.impatient(t, in) })
	t.Run("an untrusted certificate", func(t *testing.T) { u.untrusted(t, in) })
	t.Run("a long pause", func(t *testing.T) { u.paused(t, in) })
	t.Run("gzip", func(t *testing.T) {
		u.play(t, in, u.Visible, "", func(t *testing.T, w http.ResponseWriter) { zipped(t, w, u.Frames) })
	})
	t.Run("another encoding", func(t *testing.T) {
		u.play(t, in, "", "agent_answer", func(t *testing.T, w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "br")
			write(t, w, answer)
		})
	})
	if u.Rejoin != nil {
		for i := range u.Frames {
			start, frame := strings.Join(u.Frames[:i], ""), u.Frames[i]
			for name, end := range map[string]func(http.ResponseWriter){"closed": func(http.ResponseWriter) {}, "reset": reset} {
				t.Run(fmt.Sprintf("half of frame %d, %s", i, name), func(t *testing.T) {
					u.halved(t, in, failFirst(func(w http.ResponseWriter) {
						write(t, w, start+frame[:len(frame)/2])
						end(w)
					}))
				})
			}
		}
	} else {
		t.Run("half a frame", func(t *testing.T) { u.play(t, in, "", "cut_short", pieces(body+last[:len(last)/2])) })
		t.Run("reset in the middle", func(t *testing.T) {
			u.play(t, in, "", "cut_short", func(t *testing.T, w http.ResponseWriter) {
				write(t, w, body)
				reset(w)
			})
		})
	}
	t.Run("a frame that never ends", func(t *testing.T) { u.drip(t, in, body+"data: ", " ") })
	t.Run("comments without end", func(t *testing.T) { u.drip(t, in, body, ": still here\n") })
	t.Run("blank lines without end", func(t *testing.T) { u.drip(t, in, body, "\n") })
	t.Run("data-less events without end", func(t *testing.T) { u.drip(t, in, body, "event: beat\nid: 7\n\n") })
	for _, beat := range u.KeepAlive {
		t.Run("keep-alives without end", func(t *testing.T) { u.drip(t, in, body, beat) })
	}
	t.Run("silence", func(t *testing.T) { u.silence(t, in, body) })
}

// play runs one turn and checks its end. If code is empty, the turn must complete with the visible text;
// otherwise Run must return an error with that code. The code "invalid" stands for any error of the dialect.
// answer is called for each accepted request.
func (u *Upstream) play(t *testing.T, in agent.Input, visible, code string, answer func(*testing.T, http.ResponseWriter)) {
	t.Helper()
	stage := NewStage(t.Context())
	err := u.run(t, stage, in, answer)
	turn := stage.Turn()
	if code == "" {
		if err != nil || turn.Outcome != event.Completed || stage.Visible() != visible {
			t.Errorf("%v; the turn is %s, %v; readers see %q, want %q", err, turn.Outcome, turn.Error, stage.Visible(), visible)
		}
		return
	}
	if err == nil {
		t.Errorf("no error; the turn is %s, readers see %q", turn.Outcome, stage.Visible())
		return
	}
	wantCode(t, err, code)
}

// wantCode fails the test unless err is an [agent.Error] with the code or, for "invalid", an error that names
// the dialect.
func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if code == "invalid" {
		if !strings.Contains(err.Error(), "dialect") {
			t.Errorf("got %v, want an error of the dialect", err)
		}
		return
	}
	if failure, ok := errors.AsType[*agent.Error](err); !ok || failure.Code != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

// run runs one turn on a stage. answer is called for each accepted request, and writes the body; the header is
// written before. Requests that resume a stream are passed to Rejoin first, since Accept would reject them.
func (u *Upstream) run(t *testing.T, stage *Stage, in agent.Input, answer func(*testing.T, http.ResponseWriter)) error {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u.Rejoin != nil && u.Rejoin(t, w, r) {
			return
		}
		if u.Accept(t, w, r) {
			w.Header().Set("Content-Type", "text/event-stream")
			answer(t, w)
		}
	}))
	defer s.Close()
	return stage.Run(u.New(t, s.URL), in)
}

// zipped answers with gzip and flushes after each frame, as a proxy that compresses streams does. The agent
// doesn't request compression, but must decode it.
func zipped(t *testing.T, w http.ResponseWriter, frames []string) {
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	for _, f := range frames {
		_, err := io.WriteString(z, f)
		if err = errors.Join(err, z.Flush()); err != nil {
			t.Log("write:", err)
		}
		write(t, w, "")
	}
	if err := z.Close(); err != nil {
		t.Log("write:", err)
	}
}

// splitBytes returns the bytes of a text as one string each.
func splitBytes(text string) []string {
	pieces := make([]string, len(text))
	for i := range pieces {
		pieces[i] = text[i : i+1]
	}
	return pieces
}

// impatient runs one turn against a closed port, with a limit on silence shorter than the pauses between retries. The turn must end
// with the error of the attempts, not with that of its silence.
func (u *Upstream) impatient(t *testing.T, in agent.Input) {
	url := unusedURL(t)
	synctest.Test(t, func(t *testing.T) {
		stage := NewStage(t.Context())
		stage.Silence = 1500 * time.Millisecond
		err := stage.Run(u.New(t, url), in)
		turn := stage.Turn()
		if err == nil || turn.Error == nil || turn.Error.Code != "agent_unreachable" || !strings.Contains(turn.Error.Message, "refused") {
			t.Errorf("%v; the turn is %s, %v", err, turn.Outcome, turn.Error)
		}
	})
}

// untrusted runs one turn against a server with a self-signed certificate. The request must not be retried.
func (u *Upstream) untrusted(t *testing.T, in agent.Input) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	stage := NewStage(t.Context())
	// An overloaded machine may take longer than the limit of a handshake. Such an attempt is rightly retried, before the certificate is seen.
	stage.OnTrouble = func(e *agent.Error) {
		if strings.Contains(e.Message, "certificate") {
			t.Errorf("retried after %v", e)
		}
	}
	err := stage.Run(u.New(t, s.URL), in)
	wantCode(t, err, "agent_unreachable")
	if failure, ok := errors.AsType[*agent.Error](err); !ok || failure.Retryable || !strings.Contains(failure.Message, "certificate") {
		t.Errorf("the error is %+v", err)
	}
}

// paused runs one turn against a server that asks for a retry in ten minutes, longer than a turn waits. The error must say when to retry.
func (u *Upstream) paused(t *testing.T, in agent.Input) {
	err := u.run(t, NewStage(t.Context()), in, func(_ *testing.T, w http.ResponseWriter) {
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	wantCode(t, err, "agent_status")
	if failure, ok := errors.AsType[*agent.Error](err); !ok || !failure.Retryable || !strings.HasSuffix(failure.Message, "try again in 10m") {
		t.Errorf("the error is %+v", err)
	}
}

// unusedURL returns a URL with a closed port.
func unusedURL(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return url
}

// testRefused runs one turn against a closed port. The agent must retry for at least a second and give up within a minute.
func (u *Upstream) testRefused(t *testing.T, in agent.Input) {
	url := unusedURL(t)
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		stage := NewStage(t.Context())
		err := stage.Run(u.New(t, url), in)
		if err == nil {
			t.Fatalf("no error; the turn is %s", stage.Turn().Outcome)
		}
		wantCode(t, err, "agent_unreachable")
		if took := time.Since(begin); took < time.Second || took > time.Minute {
			t.Errorf("given up after %v", took)
		}
	})
}

// halved runs one turn whose stream ends within a frame. Viewers must see the whole answer, or the turn must fail as cut short.
func (u *Upstream) halved(t *testing.T, in agent.Input, answer func(*testing.T, http.ResponseWriter)) {
	stage := NewStage(t.Context())
	err := u.run(t, stage, in, answer)
	if err != nil {
		wantCode(t, err, "cut_short")
		return
	}
	if o := stage.Turn().Outcome; o != event.Completed || stage.Visible() != u.Visible {
		t.Errorf("the turn is %s; readers see %q, want %q", o, stage.Visible(), u.Visible)
	}
}

// dripLimit is how many times drip sends its bytes, 10 ms apart: far longer than the limit on silence.
const dripLimit = 500

// drip runs one turn whose server repeats bytes without content every 10 ms. The turn must fail for its silence
// after 300 ms. If it doesn't, the server stops after dripLimit repetitions and fails the test, instead of
// blocking it.
func (u *Upstream) drip(t *testing.T, in agent.Input, body, drop string) {
	stage := NewStage(t.Context())
	stage.Silence = 300 * time.Millisecond
	err := u.run(t, stage, in, func(t *testing.T, w http.ResponseWriter) {
		write(t, w, body)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for range dripLimit {
			select {
			case <-stage.Context().Done():
				return
			case <-tick.C:
				write(t, w, drop)
			}
		}
		t.Errorf("after %d times %q the turn still runs", dripLimit, drop)
	})
	// The error of Run is irrelevant, since the turn ended before.
	turn := stage.Turn()
	if turn.Outcome != event.Failed || turn.Error == nil || turn.Error.Code != CodeSilence {
		t.Errorf("%v; the turn is %s, %v", err, turn.Outcome, turn.Error)
	}
}

// silence stops a turn while its server is silent. The request must be canceled, and the turn must be
// cancelled. Run may return the end of the turn or the cancellation, but not nil, since the answer wasn't
// complete.
func (u *Upstream) silence(t *testing.T, in agent.Input, body string) {
	silent, disconnected := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !u.Accept(t, w, r) {
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		write(t, w, body)
		close(silent)
		<-r.Context().Done()
		close(disconnected)
	}))
	defer s.Close()
	stage := NewStage(t.Context())
	result := make(chan error, 1)
	a := u.New(t, s.URL)
	go func() { result <- stage.Run(a, in) }()
	<-silent
	if err := stage.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err == nil || !errors.Is(err, agent.ErrTurnOver) && !errors.Is(err, context.Canceled) {
		t.Errorf("Run returned %v after the stop", err)
	}
	<-disconnected
	if o := stage.Turn().Outcome; o != event.Cancelled {
		t.Errorf("the turn is %s", o)
	}
}

// write writes and flushes a piece of a response. An error is only logged, because the agent may rightly have
// disconnected.
func write(t *testing.T, w http.ResponseWriter, s string) {
	if _, err := w.Write([]byte(s)); err != nil && t.Context().Err() == nil {
		t.Logf("write: %v", err) // expected if the agent has disconnected
	}
	w.(http.Flusher).Flush()
}

// reset closes the connection with a TCP reset, which a client sees as an error and not as the end of the body.
func reset(w http.ResponseWriter) {
	c, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err) // HTTP/1 connections can be hijacked
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
