package elizaws

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/service/signals"
)

// passes accepts tokens "NAME/SECONDS", valid for that long from the start of the test.
type passes struct{ began time.Time }

func (p passes) Verify(_ context.Context, token string) (server.Identity, error) {
	name, life, ok := strings.Cut(token, "/")
	after, err := time.ParseDuration(life + "s")
	if !ok || err != nil {
		return server.Identity{}, errors.New("no pass")
	}
	id := server.Identity{Principal: gateway.Principal{Tenant: "t1", Subject: name}, Expires: p.began.Add(after)}
	if !time.Now().Before(id.Expires) {
		return id, server.ErrExpired
	}
	return id, nil
}

func withPasses(so *server.Options, _ *Options) { so.Users = passes{time.Now()} }

func bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

// until reads up to the end of the socket, without a time limit.
func (c *client) until() (code websocket.StatusCode, frames []string) {
	for {
		_, b, err := c.conn.Read(context.Background())
		if err != nil {
			return websocket.CloseStatus(err), frames
		}
		frames = append(frames, string(b))
	}
}

// A socket ends with its token, unless the client sends a newer one of the same user in time. Other tokens change nothing.
func TestRenewal(t *testing.T) {
	for name, tt := range map[string]struct {
		header bool   // the first token is in the handshake
		sent   string // after 50 s
		ends   time.Duration
	}{
		"none":               {false, "", 60 * time.Second},
		"none, by a header":  {true, "", 60 * time.Second},
		"newer":              {false, "alice/110", 110 * time.Second},
		"newer, by a header": {true, "alice/110", 110 * time.Second},
		"another user's":     {false, "bob/110", 60 * time.Second},
		"the admin's":        {false, secret, 60 * time.Second},
		"wrong":              {false, "nonsense", 60 * time.Second},
		"over":               {false, "alice/10", 60 * time.Second},
		"shorter":            {false, "alice/55", 55 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			timedWith(t, withPasses, func(_ *harness, dial func(http.Header) *client) {
				start := time.Now()
				var c *client
				if tt.header {
					c = dial(bearer("alice/60"))
				} else {
					c = dial(nil).send(`{"type":"auth","token":"alice/60"}`)
					c.want("auth-ok")
				}
				renew := time.AfterFunc(50*time.Second, func() {
					if tt.sent != "" {
						c.send(`{"type":"auth","token":"` + tt.sent + `"}`)
					}
				})
				defer renew.Stop()
				code, frames := c.until()
				if took := time.Since(start); code != websocket.StatusPolicyViolation || took != tt.ends {
					t.Errorf("closed with %d after %v, want %v", code, took, tt.ends)
				}
				for _, f := range frames {
					if !strings.HasPrefix(f, `{"type":"status"`) {
						t.Errorf("the socket got %s", f)
					}
				}
			})
		})
	}
}

// A logout ends the sockets that its cookie opened, and no others.
func TestSessionEnds(t *testing.T) {
	h := newHarness(t, nil)
	ask := func(method, body string, cookie *http.Cookie) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, h.hs.URL+"/api/auth/session", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if cookie != nil {
			r.AddCookie(cookie)
			r.Header.Set("Origin", h.hs.URL)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res
	}
	cookie := ask(http.MethodPost, `{"token":"`+secret+`"}`, nil).Cookies()[0]
	mine := h.dial("", "Cookie", cookie.Name+"="+cookie.Value)
	mine.want("status")
	other := h.greeted("")
	if res := ask(http.MethodDelete, "", cookie); res.StatusCode != http.StatusNoContent {
		t.Fatal(res.Status)
	}
	if code, _ := mine.closed(); code != websocket.StatusPolicyViolation {
		t.Errorf("closed with %d", code)
	}
	other.send(`{"type":"ping"}`).want("pong")
	if code, frames := h.dial("", "Cookie", cookie.Name+"="+cookie.Value).send(`{"type":"ping"}`).closed(); code != websocket.StatusPolicyViolation || len(frames) > 0 {
		t.Errorf("its cookie still opens sockets: closed with %d after %q", code, frames)
	}
}

// A socket that accepts no bytes delays no other socket, and is disconnected after the stall limit.
func TestStalled(t *testing.T) {
	const stall, many = time.Minute, 1000
	timedWith(t, func(so *server.Options, _ *Options) { so.Stall = stall }, func(h *harness, dial func(http.Header) *client) {
		start := time.Now()
		stalled := dial(http.Header{"Authorization": {"Bearer " + secret}, "Leat-Subject": {"alice"}, "Leat-Tenant": {"t1"}})
		stalled.send(`{"type":"active-conversation","conversationId":"one"}`)
		reader := dial(bearer(secret))
		got := make(chan int)
		go func() {
			n, frames := 0, 0
			for n < many || frames < 100 {
				_, b, err := reader.conn.Read(context.Background())
				if err != nil {
					break
				}
				switch s := string(b); {
				case strings.HasPrefix(s, `{"type":"training_event"`):
					n++
				case s == `{"type":"emote"}`:
					frames++
				}
			}
			got <- n + frames
		}()
		synctest.Wait() // both have joined, and the first one is blocked in its first frame
		if h.hub.Active(alice) != "one" {
			t.Fatal("not looked")
		}
		h.publish(many, "")
		for range 100 {
			h.hub.Send(hub.Frame{Broadcast: true, JSON: []byte(`{"type":"emote"}`)})
		}
		if n := <-got; n != many+100 || time.Since(start) != 0 {
			t.Errorf("meanwhile the other socket got %d frames, %v later", n, time.Since(start))
		}
		_ = reader.conn.CloseNow()
		time.Sleep(stall - time.Second)
		synctest.Wait()
		if h.hub.Active(alice) != "one" {
			t.Error("it is cut too early")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if h.hub.Active(alice) != "" {
			t.Error("it is not cut")
		}
		_ = stalled.conn.CloseNow()
	})
}

// A thousand streaming turns leave room in the signal log for other signals, earlier and later ones.
func TestThousandTurns(t *testing.T) {
	const turns, others = 1000, 100
	timed(t, func(h *harness, dial func(http.Header) *client) {
		h.publish(others, "")
		for range turns {
			conv := h.create(admin)
			if _, err := h.gw.Do(h.t.Context(), admin, conv, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: "stream"}}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		h.publish(others, "")
		all, gap := h.log.After(0)
		mine := 0
		for _, e := range all {
			if e.Type == signals.TrainingEvent {
				mine++
			}
		}
		if told := len(all) - mine; gap || mine != 2*others || told < signals.Cap/5 || told > signals.Cap/2 {
			t.Errorf("of %d other signals, %d are stored, and %d of the turns", 2*others, mine, told)
		}
		c := dial(bearer(secret))
		c.want("status")
		for i := range replayLimit {
			f := c.next()
			if want := signals.ID(h.log.Head() - replayLimit + 1 + int64(i)); f.EventID != want || i >= replayLimit-others && f.Type != signals.TrainingEvent {
				t.Fatalf("number %d of the replay is %s", i, f.raw)
			}
		}
		_ = c.conn.CloseNow()
	})
}

// A user has a limited number of sockets. Above it, a socket is refused for now, and accepted once another one has closed.
func TestViewers(t *testing.T) {
	h := newHarness(t, nil)
	var open []*client
	for range viewers {
		open = append(open, h.greeted("", as("alice")...))
	}
	// another returns the close code of a refused socket, or 0 if the socket is accepted.
	another := func() websocket.StatusCode {
		t.Helper()
		c := h.dial("", append([]string{"Authorization", "Bearer " + secret}, as("alice")...)...)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if _, _, err := c.conn.Read(ctx); err != nil {
			return websocket.CloseStatus(err)
		}
		return 0
	}
	if code := another(); code != websocket.StatusTryAgainLater {
		t.Errorf("closed with %d", code)
	}
	h.greeted("", as("bob")...)
	if err := open[0].conn.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Fatal(err)
	}
	for code := another(); code != 0; code = another() { // the slot is free just after the close handshake
		if code != websocket.StatusTryAgainLater {
			t.Fatalf("closed with %d", code)
		}
	}
}

// docs/eliza.md lists how sockets end; each way has its test.
func TestEndsAreDocumented(t *testing.T) {
	tests := map[string]func(*testing.T){
		"1007": TestNonsense, "1008": TestRenewal, "1009": TestNonsense, "1012": TestShutdown, "1013": TestViewers, "nothing": TestStalled,
	}
	b, err := os.ReadFile("../../../docs/eliza.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(b), "| closed with | |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := 0
	for line := range strings.Lines(table) {
		rows++
		if code := strings.TrimSpace(strings.Split(line, "|")[1]); tests[code] == nil {
			t.Errorf("%s has no test", code)
		}
	}
	if rows != len(tests) {
		t.Errorf("%d rows for %d ways to end", rows, len(tests))
	}
}
