package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/push"
	"github.com/leat-dev/leat/internal/service/quota"
)

// measured is a test gateway with its metrics.
func measured(t *testing.T, run agentFunc, change func(*gateway.Config)) (*testGateway, func(series string) string) {
	t.Helper()
	m := gateway.NewMetrics()
	h := newTestGateway(t, nil, gateway.Agents{"a": {Agent: run}}, func(c *gateway.Config) {
		c.Metrics = m
		if change != nil {
			change(c)
		}
	})
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m, h.Collector())
	return h, func(series string) string {
		w := httptest.NewRecorder()
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		for line := range strings.Lines(w.Body.String()) {
			if rest, ok := strings.CutPrefix(line, series+" "); ok {
				return strings.TrimSpace(rest)
			}
		}
		return ""
	}
}

// Each turn is counted once for its agent, whatever ends it. Late operations and queued turns are counted too.
func TestMetricsOfTurns(t *testing.T) {
	said, stopped, late := make(chan struct{}), make(chan struct{}), make(chan struct{})
	run := func(_ context.Context, in agent.Input, out *agent.Emitter) error {
		if in.Message.Text != "wait" {
			if err := out.Text("done"); err != nil {
				return err
			}
			return out.End(event.Completed, "", &event.Usage{Model: strings.Repeat("m", 100), Input: 3, Output: 5, Reasoning: 2})
		}
		if err := out.Text("so far"); err != nil {
			return err
		}
		close(said)
		<-stopped
		for range 3 {
			if err := out.Text("too late"); err == nil {
				t.Error("what comes after the end is taken")
			}
		}
		close(late)
		return nil
	}
	h, metric := measured(t, run, nil)
	c := h.create(admin)
	first := h.send(c, "wait")
	<-said
	second := h.send(c, "go on")
	if n := metric("leat_turns_queued"); n != "1" {
		t.Errorf("%s turns wait", n)
	}
	if n := metric("leat_turns_running"); n != "1" {
		t.Errorf("%s turns run", n)
	}
	if _, err := h.Do(t.Context(), admin, c, gateway.Command{Type: gateway.CommandStop, Turn: first.Turn}); err != nil {
		t.Fatal(err)
	}
	close(stopped)
	<-late
	h.ended(c, second.Turn)
	h.close() // readers see the end of a turn before it is counted
	for series, want := range map[string]string{
		`leat_turns_total{agent="a",outcome="cancelled"}`:              "1",
		`leat_turns_total{agent="a",outcome="completed"}`:              "1",
		`leat_turn_seconds_count{agent="a"}`:                           "2",
		`leat_turn_first_text_seconds_count{agent="a"}`:                "2",
		`leat_late_operations_total`:                                   "3",
		`leat_tokens_total{agent="a",kind="input",model="other"}`:      "3",
		`leat_tokens_total{agent="a",kind="output",model="other"}`:     "5",
		`leat_tokens_total{agent="a",kind="reasoning",model="other"}`:  "2",
		`leat_tokens_total{agent="a",kind="cache_read",model="other"}`: "",
		`leat_turn_errors_total{code="agent_error"}`:                   "0",
		`leat_turns_queued`:            "0",
		`leat_commit_queue_bytes`:      "0",
		`leat_conversations_failing`:   "0",
		`leat_commands_repeated_total`: "0",
		`leat_turns_total{agent="` + first.Turn + `",outcome="cancelled"}`: "",
	} {
		if got := metric(series); got != want {
			t.Errorf("%s is %q, want %q", series, got, want)
		}
	}
}

// The number of labels from upstream names is limited.
func TestMetricsAreBounded(t *testing.T) {
	n := 0
	run := func(_ context.Context, in agent.Input, out *agent.Emitter) error {
		n++
		return out.End(event.Completed, "", &event.Usage{Model: in.Message.Text, Input: 1})
	}
	h, metric := measured(t, run, nil)
	c := h.create(admin)
	for i := range 70 {
		h.ended(c, h.send(c, "model-"+strings.Repeat("x", i)).Turn)
	}
	h.close() // readers see the end of a turn before it is counted
	if got := metric(`leat_tokens_total{agent="a",kind="input",model="other"}`); got != "11" {
		t.Errorf("%s tokens of other models, want 11: 6 beyond the 64th, and those of %d names whose length is beyond the bound", got, n)
	}
	if got := metric(`leat_tokens_total{agent="a",kind="input",model="model-xx"}`); got != "1" {
		t.Errorf("%q tokens of the third model", got)
	}
}

// Expired leases are counted.
func TestMetricsOfLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, metric := measured(t, func(context.Context, agent.Input, *agent.Emitter) error { return nil }, func(cfg *gateway.Config) { cfg.Lease = time.Minute })
		defer h.close()
		c := h.create(admin)
		pr, ack, err := h.Push(t.Context(), admin, c, push.Options{Dialect: "eliza-actions"})
		if err != nil {
			t.Fatal(err)
		}
		if err := pr.Close(false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute) // on the clock of synctest
		synctest.Wait()
		h.ended(c, ack.Turn)
		for series, want := range map[string]string{
			`leat_leases_expired_total`:                        "1",
			`leat_turns_total{agent="push",outcome="failed"}`:  "1",
			`leat_turn_errors_total{code="lease_expired"}`:     "1",
			`leat_turn_first_text_seconds_count{agent="push"}`: "",
		} {
			if got := metric(series); got != want {
				t.Errorf("%s is %q, want %q", series, got, want)
			}
		}
	})
}

// Refusals by quotas and waits before retries are counted.
func TestMetricsOfWaits(t *testing.T) {
	run := func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
		for _, phase := range []string{"retrying", "thinking", "retrying"} {
			if err := out.Phase(phase); err != nil {
				return err
			}
		}
		return out.Text("done")
	}
	h, metric := measured(t, run, limits(quota.Limits{Messages: 1}, quota.Limits{}))
	c := h.create(alice)
	ack := h.as(alice, c, say("one"))
	h.ended(c, ack.Turn)
	h.limited(alice, c, say("two"), gateway.ReasonRateLimited)
	h.close() // readers see the end of a turn before it is counted
	for series, want := range map[string]string{
		`leat_agent_retries_total{agent="a"}`:         "2",
		`leat_limit_refusals_total{limit="messages"}`: "1",
		`leat_limit_refusals_total{limit="turns"}`:    "0",
	} {
		if n := metric(series); n != want {
			t.Errorf("%s is %q, want %s", series, n, want)
		}
	}
}
