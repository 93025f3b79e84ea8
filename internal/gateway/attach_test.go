package gateway_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/attachments"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/files"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// An operator attaches a session. Its history is imported once and belongs to the owner. Later entries follow, also after a restart.
func TestAttach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, up := memory.New(), &agenttest.Follower{}
		h := newTestGateway(t, j, one(up), nil)
		at := time.Now().Add(-time.Hour)
		child := over("r2", "", "a child")
		child.Run.Parent = "r1"
		up.AddEntries("s1", agenttest.MessageEntry("m1", "tui", "hi", at), over("r1", "m1", "hello"), child, agenttest.MessageEntry("m1", "tui", "hi", at))
		if _, err := h.UpstreamSessions().Attach(t.Context(), alice, gateway.AttachOptions{Agent: "a", Session: "s1"}); !errors.Is(err, gateway.ErrForbidden) {
			t.Errorf("a user: %v", err)
		}
		if _, err := h.UpstreamSessions().List(t.Context(), alice, "a"); !errors.Is(err, gateway.ErrForbidden) {
			t.Errorf("a user: %v", err)
		}
		all, err := h.UpstreamSessions().List(t.Context(), admin, "a")
		if err != nil || len(all) != 1 || all[0].ID != "s1" || all[0].Title != "Session s1" {
			t.Errorf("sessions %+v, %v", all, err)
		}
		s, err := h.UpstreamSessions().Attach(t.Context(), admin, gateway.AttachOptions{Agent: "a", Session: "s1", Tenant: "t1", Owner: "alice", History: true})
		if err != nil {
			t.Fatal(err)
		}
		if s.Owner != "alice" || s.Tenant != "t1" || s.Title != "Session s1" || s.Agent != "a" {
			t.Errorf("summary %+v", s)
		}
		if _, err := h.Conversation(t.Context(), alice, gateway.ActionWrite, s.ID); err != nil {
			t.Errorf("its owner: %v", err)
		}
		if _, err := h.Conversation(t.Context(), bob, gateway.ActionRead, s.ID); !errors.Is(err, gateway.ErrNotFound) {
			t.Errorf("another user: %v", err)
		}
		tr := h.view(s.ID)
		wantTexts(t, tr, "user: hi", "assistant: hello", "assistant: a child")
		if m, run := tr.Messages[0], turnOf(t, tr, "hello"); m.At != at.UnixMilli() || m.Source != "tui" || run.Answers != m.ID || run.Outcome != event.Completed {
			t.Errorf("message %+v, run %+v", m, run)
		}
		if run := turnOf(t, tr, "a child"); run.Parent != turnOf(t, tr, "hello").ID {
			t.Errorf("child %+v", run)
		}
		up.AddEntries("s1", agenttest.MessageEntry("m2", "tui", "more", at))
		synctest.Wait()
		wantTexts(t, h.view(s.ID), "user: hi", "assistant: hello", "assistant: a child", "user: more")
		h.refusedAttach(gateway.AttachOptions{Agent: "a", Session: "s1"}, gateway.ReasonConflict)
		h.close()
		h = newTestGateway(t, j, one(up), nil)
		defer h.close()
		up.FailFollow(errors.New("cut")) // everything is added again
		time.Sleep(time.Minute)
		synctest.Wait()
		wantTexts(t, h.view(s.ID), "user: hi", "assistant: hello", "assistant: a child", "user: more")

		// Without the history, the conversation begins with the next entry.
		up.AddEntries("s2", agenttest.MessageEntry("m1", "tui", "before", at))
		s, err = h.UpstreamSessions().Attach(t.Context(), admin, gateway.AttachOptions{Agent: "a", Session: "s2", Title: "Mine"})
		if err != nil || s.Title != "Mine" {
			t.Fatal(s, err)
		}
		up.AddEntries("s2", agenttest.MessageEntry("m2", "tui", "after", at))
		synctest.Wait()
		wantTexts(t, h.view(s.ID), "user: after")
		if run := h.ended(s.ID, h.send(s.ID, "mine").Turn); run.Outcome != event.Completed {
			t.Errorf("turn %+v", run)
		}
	})
}

func (h *testGateway) refusedAttach(opt gateway.AttachOptions, reason string) {
	h.t.Helper()
	_, err := h.UpstreamSessions().Attach(h.t.Context(), admin, opt)
	var r *gateway.Rejection
	if !errors.As(err, &r) || r.Reason != reason {
		h.t.Errorf("attach: got %v, want a rejection for %s", err, reason)
	}
}

// A refused attach leaves no conversation, key or file behind.
func TestAttachRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		dir, err := files.Open(folder)
		if err != nil {
			t.Fatal(err)
		}
		up, plain := &agenttest.Follower{}, agentFunc(nil)
		j := memory.New()
		h := newTestGateway(t, j, gateway.Agents{"a": {Agent: up}, "plain": {Agent: plain}}, func(c *gateway.Config) {
			c.User = quota.Limits{Bytes: 10_000}
			c.Attachments = attachments.NewStore(attachments.Config{Journal: j, Files: dir})
		})
		defer h.close()
		live := live("r", "", "")
		up.AddEntries("live", live)
		up.AddEntries("bad", agent.Entry{Key: strings.Repeat("k", 300), Message: &agent.Message{Role: event.User, Text: "x"}})
		picture := &event.Media{URL: "data:image/png;base64,iVBORw0KGgo=", MIME: "image/png"}
		up.AddEntries("large", agent.Entry{Key: "p", Message: &agent.Message{Role: event.User, Parts: []event.Part{{Kind: event.KindMedia, Media: picture}}}},
			agenttest.MessageEntry("m", "tui", strings.Repeat("x", 20_000), time.Time{}))
		for reason, opts := range map[string][]gateway.AttachOptions{
			gateway.ReasonUnknown:  {{Agent: "nobody", Session: "s"}, {Agent: "a", Session: "none"}},
			gateway.ReasonInvalid:  {{Agent: "plain", Session: "s"}, {Agent: "a"}, {Agent: "a", Session: "large", Owner: "a\nb"}},
			gateway.ReasonUpstream: {{Agent: "a", Session: "live", History: true}, {Agent: "a", Session: "bad", History: true}},
			gateway.ReasonQuota:    {{Agent: "a", Session: "large", History: true, Tenant: "t1", Owner: "alice"}},
		} {
			for _, opt := range opts {
				h.refusedAttach(opt, reason)
			}
		}
		h.journal.fail(journal.ErrFenced)
		if _, err := h.UpstreamSessions().Attach(t.Context(), admin, gateway.AttachOptions{Agent: "a", Session: "large", History: true}); err == nil {
			t.Error("attached though the commit failed")
		}
		h.journal.fail(nil)
		if all, err := h.List(t.Context(), admin, nil, 0); err != nil || len(all) > 0 {
			t.Errorf("left: %v, %v", all, err)
		}
		left := 0
		for _, e := range must(os.ReadDir(folder))(t) {
			if inside, err := os.ReadDir(folder + "/" + e.Name()); err == nil && len(inside) > 0 {
				left++
			}
		}
		if left > 0 {
			t.Errorf("files of %d conversations are left", left)
		}
		// The operator's own conversations have no quota.
		s, err := h.UpstreamSessions().Attach(t.Context(), admin, gateway.AttachOptions{Agent: "a", Session: "large", History: true})
		if err != nil {
			t.Fatal(err)
		}
		m := h.view(s.ID).Messages[0].Parts[0].Media
		if m == nil || !strings.Contains(m.URL, "/files/") {
			t.Errorf("media %+v", m)
		}
	})
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
