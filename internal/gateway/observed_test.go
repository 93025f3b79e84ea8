package gateway_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
)

// If a session has more simultaneous runs than the limit, the others are shown as failed. A later run is observed again.
func TestObservedRunsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, more = 64, 3
		var log bytes.Buffer
		up, release := &agenttest.Follower{}, make(chan struct{})
		h, conv := following(t, nil, up, func(c *gateway.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		defer h.close()
		for i := range limit + more {
			key := fmt.Sprintf("r%d.", i)
			up.SetRun(key, holding(key, release))
			up.AddEntries(conv, live(key, "", ""))
		}
		synctest.Wait()
		open, refused := 0, 0
		for _, turn := range h.view(conv).Turns {
			switch {
			case turn.Unfinished():
				open++
			case turn.Outcome == event.Failed && turn.Error.Code == "too_many_runs":
				refused++
			}
		}
		if open != limit || refused != more {
			t.Errorf("%d runs are observed and %d refused, want %d and %d", open, refused, limit, more)
		}
		if n := strings.Count(log.String(), "level=WARN msg=\"run not shown: too many runs"); n != more {
			t.Errorf("%d lines of the log:\n%s", n, log.String())
		}
		close(release)
		synctest.Wait()
		up.SetRun("later", holding("later", release))
		up.AddEntries(conv, live("later", "", ""))
		synctest.Wait()
		wantOutcome(t, turnOf(t, h.view(conv), "later"), event.Completed, "")
	})
}
