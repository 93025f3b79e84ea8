package openclaw

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/agent"
)

// A silent turn is alive while the gateway runs or queues it, ends if only its end was missed, and fails if the gateway no
// longer knows it. If the gateway doesn't answer, Probe returns an error.
func TestProbe(t *testing.T) {
	quiet := func(r *fakeRun) {
		r.speak("1", "H")
		r.wait(20 * time.Second)
		r.final("1", "Hi")
	}
	var lost *agent.Error
	for _, tt := range []struct {
		name   string
		play   func(*fakeRun)
		before func(*fakeGateway, *turnHost) // Probe is called 5 s later
		want   func(error) bool
	}{
		{"it runs", quiet, nil, func(err error) bool { return err == nil }},
		{"it waits for another client's run", answerMessage, func(f *fakeGateway, h *turnHost) {
			*h = *startBehindOther(t, f)
		}, func(err error) bool { return err == nil }},
		{"its end was missed", func(r *fakeRun) {
			r.speak("1", "Hi")
			r.rowText("Hi", "stop")
			r.f.mu.Lock()
			r.isOver = true
			r.f.mu.Unlock()
		}, nil, func(err error) bool { return err == nil }},
		{"it is forgotten", func(r *fakeRun) {
			r.speak("1", "Hi")
			r.f.mu.Lock()
			r.isOver = true
			r.f.mu.Unlock()
		}, nil, func(err error) bool { return errors.As(err, &lost) && lost.Code == codeLost }},
		{"the gateway is away", quiet, func(f *fakeGateway, _ *turnHost) {
			time.AfterFunc(time.Second, f.crash)
			time.AfterFunc(30*time.Second, f.restart)
		}, func(err error) bool { return err != nil && !errors.As(err, &lost) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, 4, tt.play, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
				h := newTurnHost(t, "hello")
				if tt.before != nil {
					tt.before(f, h)
				}
				ctx, cancel := context.WithCancel(t.Context())
				over := make(chan struct{})
				go func() {
					defer close(over)
					_ = h.runUntil(ctx, a, nil)
				}()
				time.Sleep(5 * time.Second)
				synctest.Wait() // the turn has its input
				asking, done := context.WithTimeout(ctx, 10*time.Second)
				if err := a.Probe(asking, agent.Input{Turn: h.id}); !tt.want(err) {
					t.Errorf("it says %v", err)
				}
				done()
				cancel()
				<-over
			})
		})
	}
}

// While a turn can't be sent or its message is refused temporarily, the emitter knows the reason, with which a silent turn
// fails.
func TestSilentTurnReportsTrouble(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  func(*fakeGateway)
		code string
	}{
		{"nobody listens", func(f *fakeGateway) { f.down = true }, codeUnreachable},
		{"the message is refused for now", func(f *fakeGateway) {
			f.refusals = slices.Repeat([]map[string]any{{"code": "UNAVAILABLE", "message": "busy", "retryable": true}}, 100)
		}, codeRequest},
		{"the gateway went away", func(f *fakeGateway) { time.AfterFunc(2*time.Second, f.crash) }, codeRestarted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, 4, func(r *fakeRun) { streamSlowly(r, "1") }, func(t *testing.T, f *fakeGateway, a *gatewayAgent) {
				tt.set(f)
				h := newTurnHost(t, "hello")
				die := make(chan struct{})
				time.AfterFunc(10*time.Second, func() { close(die) })
				_ = h.runUntil(t.Context(), a, die)
				h.mu.Lock()
				defer h.mu.Unlock()
				if h.trouble == nil || h.trouble.Code != tt.code {
					t.Errorf("the trouble is %+v, want %s", h.trouble, tt.code)
				}
				if h.turnLocked().Phase == "" {
					t.Error("readers see no phase")
				}
			})
		})
	}
}

// An untrusted certificate fails the turn at once. Viewers don't see the details.
func TestCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, 4, nil)
		defer f.stop()
		a := newAgent(t, f, func(c *config) {
			c.dial = func(context.Context, string, string) (net.Conn, error) {
				return nil, x509.UnknownAuthorityError{}
			}
		})
		defer a.Close()
		h := newTurnHost(t, "hello")
		begin := time.Now()
		err := h.runUntil(t.Context(), a, nil)
		if took := time.Since(begin); took > time.Second {
			t.Errorf("it took %v", took)
		}
		h.checkFailure(t, codeUnreachable, "certificate")
		if err == nil || !strings.Contains(err.Error(), "unknown authority") || strings.Contains(h.turn().Error.Message, "authority") || h.turn().Error.Retryable {
			t.Errorf("operators get %v, readers %+v", err, h.turn().Error)
		}
	})
}

// Viewers see the kind of a file's failure, without paths and addresses.
func TestFileErrorHidesPaths(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3)}, Err: syscall.ECONNREFUSED}, "connection refused"},
		{errors.New("open /srv/claw/secret: permission denied"), ""},
		{errNoSource, ""},
		{errLarge, "it is too large"},
		{errSlow, "it took too long"},
	} {
		e := fileError("pic.png", tt.err)
		want := "pic.png could not be fetched"
		if tt.want != "" {
			want += ": " + tt.want
		}
		if e.Code != codeFile || e.Message != want {
			t.Errorf("%v: %+v, want %q", tt.err, e, want)
		}
	}
}
