package eliza

import (
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
)

// A journal on disk has the same messages: as written, compacted, and read by another gateway.
func TestCallbacksOnDisk(t *testing.T) {
	for _, c := range agenttest.Cases() {
		if c.Script.Fails() {
			continue // POST answers these with an error
		}
		t.Run(c.Name, func(t *testing.T) {
			dir := t.TempDir()
			h := &harness{t: t, agents: gateway.Agents{"eliza": {Agent: c.Script.Agent(nil)}}}
			open := func() {
				t.Helper()
				j, err := sqlite.Open(sqlite.Options{Dir: dir, Sync: sqlite.Normal, Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				h.journal, h.store = j, j
				h.start()
			}
			closed := func() {
				t.Helper()
				h.stop()
				if err := h.journal.Close(); err != nil {
					t.Fatal(err)
				}
			}
			open()
			id := h.create()
			r := h.send(id, "play a song")
			list := h.messages(id)
			got := agenttest.Playback{Views: []string{r.Text}, Snapshots: []agenttest.Snapshot{
				{Name: "the reply", Visible: r.Text, History: r.ActionCallbackHistory, Reload: &list[1].Text},
			}}
			h.stop()
			s, err := h.journal.Conversation(t.Context(), id)
			if err == nil {
				err = h.journal.Compact(t.Context(), id, s.Head)
			}
			if err != nil {
				t.Fatal(err)
			}
			h.start()
			closed()
			open()
			defer closed()
			again := h.messages(id)
			if d := cmp.Diff(list, again, cmp.AllowUnexported(message{})); d != "" {
				t.Errorf("compacted and read again (-before +after)\n%s", d)
			}
			text, history := h.visible(id, r.Turn)
			got.Snapshots = append(got.Snapshots, agenttest.Snapshot{Name: "from the file", Visible: text, History: history, Reload: &again[1].Text})
			c.Check(t, got)
		})
	}
}
