package langgraph

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/server/outputtest"
	"github.com/leat-dev/leat/internal/service/quota"
)

// newLimitedHarness returns a harness in which each user can have one stream at a time.
func newLimitedHarness(t *testing.T, a agent.Agent) *harness {
	t.Helper()
	return &harness{outputtest.Start(t, a, quota.Limits{Viewers: 1}, register)}
}

// readTo reads a stream up to a text.
func (h *harness) readTo(res *http.Response, text string) {
	h.T.Helper()
	var seen []byte
	for part := make([]byte, 1024); !bytes.Contains(seen, []byte(text)); {
		n, err := res.Body.Read(part)
		if seen = append(seen, part[:n]...); err != nil {
			h.T.Fatalf("%v after %q", err, seen)
		}
	}
}

// A run is stopped when its client disconnects, if the client asked for it, and only then.
func TestDisconnect(t *testing.T) {
	for _, c := range []struct{ begin, join, want string }{
		{"", "", "success"},
		{"continue", "", "success"},
		{"cancel", "", statusInterrupted},
		{"", "cancel_on_disconnect=false", "success"},
		{"", "cancel_on_disconnect=0", "success"},
		{"", "cancel_on_disconnect=true", statusInterrupted},
		{"", "cancel_on_disconnect=1", statusInterrupted},
	} {
		t.Run(c.begin+c.join, func(t *testing.T) {
			gate := make(chan struct{})
			h := newLimitedHarness(t, agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
				if err := out.Text("so far"); err != nil {
					return err
				}
				select {
				case <-gate:
					return out.Text(", and the rest")
				case <-ctx.Done():
					return ctx.Err()
				}
			}))
			options := `,"if_not_exists":"create"`
			if c.begin != "" {
				options += `,"on_disconnect":"` + c.begin + `"`
			}
			path := "/threads/t/runs"
			if c.join == "" {
				path += "/stream"
			}
			res := h.send("alice", http.MethodPost, path, question("u", "go", options))
			run := res.Header.Get("Content-Location")
			if c.join != "" {
				res = h.send("alice", http.MethodGet, run+"/stream?"+c.join, "")
			}
			if c.join == "" {
				h.readTo(res, "so far")
			} else {
				h.readTo(res, "metadata")
			}
			if err := res.Body.Close(); err != nil {
				t.Fatal(err)
			}
			// The limit is one stream, so another one is admitted when the gateway has noticed that the first one is gone.
			for status := http.StatusTooManyRequests; status == http.StatusTooManyRequests; {
				again := h.send("alice", http.MethodHead, run+"/join", "")
				status = again.StatusCode
				_ = again.Body.Close()
			}
			close(gate)
			h.ask(http.StatusOK, "alice", http.MethodGet, run+"/join", "")
			if got := decode[runInfo](t, h.ask(http.StatusOK, "alice", http.MethodGet, run, "")); got.Status != c.want {
				t.Errorf("%+v, want %s", got, c.want)
			}
		})
	}
}

// A user can't follow, wait for or stop the runs of another one.
func TestRunsAreTheirs(t *testing.T) {
	h := newHarness(t, waiting)
	r := h.start("alice", "t", "u", "go", "")
	run := r.Result.(map[string]any)["run_id"].(string)
	h.ask(http.StatusOK, "bob", http.MethodPost, "/threads", `{"thread_id":"t"}`)
	for _, path := range []string{"/threads/t/runs/" + run, "/threads/t/runs/" + run + "/stream", "/threads/t/runs/" + run + "/join"} {
		h.ask(http.StatusNotFound, "bob", http.MethodGet, path, "")
	}
	h.ask(http.StatusNotFound, "bob", http.MethodPost, "/threads/t/runs/"+run+"/cancel", "")
	h.ask(http.StatusNotFound, "bob", http.MethodPost, "/runs/cancel", `{"thread_id":"t","run_ids":["`+run+`"]}`)
	h.ask(http.StatusNoContent, "bob", http.MethodPost, "/runs/cancel", `{"thread_id":"t"}`)
	got := decode[runInfo](t, h.ask(http.StatusOK, "alice", http.MethodGet, "/threads/t/runs/"+run, ""))
	if got.Status != "running" && got.Status != "pending" {
		t.Errorf("%+v", got)
	}
	h.ask(http.StatusNoContent, "alice", http.MethodPost, "/threads/t/runs/"+run+"/cancel?action=rollback", "")
	if list := decode[[]runInfo](t, h.ask(http.StatusOK, "alice", http.MethodGet, "/threads/t/runs", "")); len(list) != 0 {
		t.Errorf("after a rollback: %+v", list)
	}
}

// Runs can be stopped by their status. Those that have ended can't be rolled back, because others may follow.
func TestCancelRuns(t *testing.T) {
	h := newHarness(t, waiting)
	h.start("", "t", "a", "one", "")
	h.start("", "t", "b", "two", "")
	h.readTo(h.send("", http.MethodPost, "/threads/t/stream/events", `{"channels":["messages"]}`), "so far")
	statuses := func() (list []string) {
		for _, run := range decode[[]runInfo](t, h.ask(http.StatusOK, "", http.MethodGet, "/threads/t/runs", "")) {
			list = append(list, run.Status)
		}
		return list // the newest first
	}
	h.ask(http.StatusUnprocessableEntity, "", http.MethodPost, "/runs/cancel", `{}`)
	h.ask(http.StatusBadRequest, "", http.MethodPost, "/runs/cancel", `{"thread_id":"t","status":"x"}`)
	h.ask(http.StatusBadRequest, "", http.MethodPost, "/runs/cancel?action=x", `{"thread_id":"t"}`)
	h.ask(http.StatusNotFound, "", http.MethodPost, "/runs/cancel", `{"thread_id":"t","run_ids":["none"]}`)
	if got := statuses(); !slices.Equal(got, []string{statusPending, statusRunning}) {
		t.Fatalf("refused: %q", got)
	}
	h.ask(http.StatusNoContent, "", http.MethodPost, "/runs/cancel", `{"thread_id":"t","status":"pending"}`)
	if got := statuses(); !slices.Equal(got, []string{statusInterrupted, statusRunning}) {
		t.Errorf("pending ones stopped: %q", got)
	}
	h.ask(http.StatusNoContent, "", http.MethodPost, "/runs/cancel", `{"thread_id":"t"}`)
	if got := statuses(); !slices.Equal(got, []string{statusInterrupted, statusInterrupted}) {
		t.Errorf("all stopped: %q", got)
	}
	run := decode[[]runInfo](t, h.ask(http.StatusOK, "", http.MethodGet, "/threads/t/runs", ""))[1].ID
	h.ask(http.StatusNoContent, "", http.MethodPost, "/threads/t/runs/"+run+"/cancel", "")
	h.ask(http.StatusConflict, "", http.MethodPost, "/threads/t/runs/"+run+"/cancel?action=rollback", "")
	if st := h.state("t"); len(st.Values.Messages) != 3 {
		t.Errorf("after a rollback of a run that has ended: %q", st.texts())
	}
	for _, path := range []string{"/none", "/" + run + ".x", "/" + run + ".100000"} {
		h.ask(http.StatusNotFound, "", http.MethodGet, "/threads/t/runs"+path+"/stream", "")
	}
}

// A client that joins gets the stop or the removal of its run, even if it claims to have more than the log. A client that joins again may send
// its modes twice.
func TestJoin(t *testing.T) {
	h := newHarness(t, waiting)
	run := h.start("", "t", "u", "go", "").Result.(map[string]any)["run_id"].(string)
	path := "/threads/t/runs/" + run + "/stream"
	for _, query := range []string{"?cancel_on_disconnect=maybe", "?stream_mode=[", "?stream_mode=debug"} {
		if res := h.send("", http.MethodGet, path+query, ""); res.StatusCode != http.StatusBadRequest && res.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", query, res.StatusCode)
		}
	}
	res := h.send("", http.MethodGet, path+"?stream_mode=values&stream_mode=updates&stream_mode="+url.QueryEscape(`["values","updates"]`), "")
	if got, want := res.Header.Get("Location"), path+"?stream_mode=values&stream_mode=updates"; got != want || res.StatusCode != http.StatusOK {
		t.Errorf("%d %s, want %s", res.StatusCode, got, want)
	}
	// The deletion stops the run, and the client reads that, or that nothing is left to be read.
	stream := h.openAfter(path, ahead)
	h.ask(http.StatusNoContent, "", http.MethodDelete, "/threads/t", "")
	got := h.readRun(stream)
	if len(got) != 1 || got[0].name != "end" && (got[0].name != "error" || got[0].id != "" || !strings.Contains(got[0].data, textRemoved)) {
		t.Errorf("%+v", got)
	}
}

// A client that claims to have more than the log gets the last event of its run: how it ended.
func TestJoinAhead(t *testing.T) {
	for name, c := range map[string]struct {
		agent agentFunc
		want  string
	}{
		"error": {func(context.Context, agent.Input, *agent.Emitter) error { return errors.New("the disk is full") }, "error"},
		"end":   {func(_ context.Context, _ agent.Input, out *agent.Emitter) error { return out.Text("done") }, "end"},
		"wait":  {asking, "end"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, c.agent)
			run := h.start("", "t", "u", "go", "").Result.(map[string]any)["run_id"].(string)
			all := h.join("t", run, "-1")
			last := all[len(all)-1]
			if last.name != c.want {
				t.Fatalf("%+v", all)
			}
			if got := h.join("t", run, ahead); len(got) != 1 || got[0] != last {
				t.Errorf("ahead: %+v, want %+v", got, last)
			}
			if got := h.join("t", run, last.id); len(got) != 0 {
				t.Errorf("with everything: %+v", got)
			}
		})
	}
}

// A gateway that stops breaks the connections of runs, because a clean end would be a success for some clients. If the end of the turn comes
// first, they get its error.
func TestStopBreaksRuns(t *testing.T) {
	h := newHarness(t, waiting)
	run := h.start("", "t", "u", "go", "").Result.(map[string]any)["run_id"].(string)
	stream := h.send("", http.MethodGet, "/threads/t/runs/"+run+"/stream", "")
	wait := h.send("", http.MethodGet, "/threads/t/runs/"+run+"/join", "")
	h.Stop()
	for name, res := range map[string]*http.Response{"stream": stream, "join": wait} {
		if b, err := io.ReadAll(res.Body); err == nil && !strings.Contains(string(b), `"error":"gateway_restart"`) {
			t.Errorf("%s ends cleanly: %s", name, b)
		}
	}
}
