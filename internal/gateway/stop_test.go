package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// slowLeaver is an agent that stores its session when its turn is left for a restart, which is after the gateway's last commit.
type slowLeaver struct{}

func (slowLeaver) Run(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
	if err := out.Text("begun"); err != nil {
		return err
	}
	<-ctx.Done()
	time.Sleep(time.Second)
	return errors.Join(context.Cause(ctx), out.KeepSession(context.WithoutCancel(ctx), json.RawMessage(`"late"`)))
}

func (slowLeaver) Resume(_ context.Context, _ agent.Input, _ json.RawMessage, out *agent.Emitter) error {
	return out.Text(" and ended")
}

// Commits that a stop interrupts are not logged as errors, because the next start continues with what the log has.
func TestAStopIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		j := memory.New()
		h := newTestGateway(t, j, one(slowLeaver{}), func(c *gateway.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		conv := h.create(admin)
		id := h.send(conv, "go").Turn
		synctest.Wait()
		h.close()
		if s := log.String(); strings.Contains(s, "level=ERROR") || strings.Contains(s, "level=WARN") || !strings.Contains(s, "the last changes of the conversation were not committed") {
			t.Errorf("a stop that was asked for logs:\n%s", s)
		}

		h = newTestGateway(t, j, one(slowLeaver{}), nil)
		defer h.close()
		wantOutcome(t, h.ended(conv, id), event.Completed, "")
		wantTexts(t, h.view(conv), "user: go", "assistant: begun", "assistant:  and ended")
	})
}

// A journal that fails is an error, also during a stop.
func TestAFailureDuringAStopIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		h := newTestGateway(t, nil, one(slowLeaver{}), func(c *gateway.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		h.send(h.create(admin), "go")
		synctest.Wait()
		h.journal.fail(journal.ErrFenced)
		h.close()
		if s := log.String(); !strings.Contains(s, `level=ERROR msg="conversation given up after a failed commit`) {
			t.Errorf("a journal that failed logs:\n%s", s)
		}
	})
}
