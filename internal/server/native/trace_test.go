package native_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

// TestTrace waits until the log of a turn is compacted; the trace then has an entry for each piece of its text.
func TestTrace(t *testing.T) {
	h := newHarness(t, options{agent: script(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
		for _, piece := range []string{"one ", "two"} {
			if err := out.Text(piece); err != nil {
				return err
			}
			if err := out.Flush(); err != nil {
				return err
			}
		}
		return nil
	})})
	conv := h.create()
	ack := h.send(conv, "go")
	h.ended(conv, ack.Turn)
	var trace journal.Trace
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { // compaction has no event that a client could wait for
		res := h.open(http.MethodGet, "/api/turns/"+ack.Turn+"/trace", nil)
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode == http.StatusOK {
			if err := json.Unmarshal(b, &trace); err != nil {
				t.Fatal(err)
			}
			break
		}
		if res.StatusCode != http.StatusNotFound || time.Now().After(end) {
			t.Fatalf("%s %s", res.Status, b)
		}
	}
	last := int64(0)
	for _, c := range trace.Commits {
		if c.Type == event.PartAppend {
			if c.End <= last || c.Commit < c.Arrival || c.Arrival == 0 {
				t.Errorf("%+v after %d", c, last)
			}
			last = c.End
		}
	}
	if trace.Turn != ack.Turn || last != int64(len("one two")) {
		t.Errorf("trace %+v", trace)
	}
	if res := h.as("bob").open(http.MethodGet, "/api/turns/"+ack.Turn+"/trace", nil); res.StatusCode != http.StatusNotFound {
		t.Errorf("another user gets %s", res.Status)
	}
}
