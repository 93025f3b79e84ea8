package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/transcript"
)

var (
	guest   = gateway.Principal{Tenant: "t1", Subject: "carol"}
	aliceT2 = gateway.Principal{Tenant: "t2", Subject: "alice"}
)

func (h *testGateway) try(p gateway.Principal, conv string, c gateway.Command) error {
	h.t.Helper()
	_, err := h.Do(h.t.Context(), p, conv, c)
	return err
}

// share grants a subject access, as alice.
func (h *testGateway) share(conv, subject, access string) {
	h.t.Helper()
	if err := h.try(alice, conv, gateway.Command{Type: gateway.CommandShare, Subject: subject, Access: access}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *testGateway) unshare(conv, subject string) {
	h.t.Helper()
	if err := h.try(alice, conv, gateway.Command{Type: gateway.CommandUnshare, Subject: subject}); err != nil {
		h.t.Fatal(err)
	}
}

// list returns the ids of all pages of a principal's list.
func (h *testGateway) list(p gateway.Principal, limit int) (ids []string) {
	h.t.Helper()
	page, err := h.List(h.t.Context(), p, nil, limit)
	for {
		if err != nil {
			h.t.Fatal(err)
		}
		for _, s := range page {
			ids = append(ids, s.ID)
		}
		if limit == 0 || len(page) < limit {
			return ids
		}
		page, err = h.List(h.t.Context(), p, &page[len(page)-1], limit)
	}
}

func (h *testGateway) wantMay(p gateway.Principal, conv string, read, write error) {
	h.t.Helper()
	_, err := h.Conversation(h.t.Context(), p, gateway.ActionRead, conv)
	if !errors.Is(err, read) {
		h.t.Errorf("%s reads: %v, want %v", p.Subject, err, read)
	}
	title := "by " + p.Subject
	if err := h.try(p, conv, gateway.Command{Type: gateway.CommandUpdate, Title: &title}); !errors.Is(err, write) {
		h.t.Errorf("%s writes: %v, want %v", p.Subject, err, write)
	}
}

func TestShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		h := newTestGateway(t, j, silentAgents(), nil)
		conv := h.create(alice)
		foreign, forbidden := gateway.ErrNotFound, gateway.ErrForbidden
		h.wantMay(bob, conv, foreign, foreign)
		h.share(conv, "bob", gateway.AccessRead)
		h.wantMay(bob, conv, nil, forbidden)
		h.wantMay(guest, conv, foreign, foreign)
		h.share(conv, "bob", gateway.AccessWrite)
		h.wantMay(bob, conv, nil, nil)
		// A guest may not share or delete, or write as the agent.
		for _, c := range []gateway.Command{
			{Type: gateway.CommandShare, Subject: "carol", Access: gateway.AccessRead},
			{Type: gateway.CommandUnshare, Subject: "bob"},
			{Type: gateway.CommandDelete},
			{Type: gateway.CommandInject, Message: &gateway.CommandMessage{Text: "I am the agent"}},
		} {
			if err := h.try(bob, conv, c); !errors.Is(err, forbidden) {
				t.Errorf("a guest: %s: %v", c.Type, err)
			}
		}
		// Users of other tenants get no access, even if they have the same name.
		h.share(conv, gateway.WholeTenant, gateway.AccessRead)
		h.wantMay(guest, conv, nil, forbidden)
		h.wantMay(aliceT2, conv, foreign, foreign)
		if ids := h.list(guest, 0); !slices.Equal(ids, []string{conv}) {
			t.Errorf("carol's list: %v", ids)
		}
		if ids := h.list(aliceT2, 0); len(ids) > 0 {
			t.Errorf("the other tenant's list: %v", ids)
		}
		if ids := h.list(alice, 0); !slices.Equal(ids, []string{conv}) {
			t.Errorf("the owner's list: %v", ids)
		}
		// Grants survive a restart.
		h.close()
		h = newTestGateway(t, j, silentAgents(), nil)
		defer h.close()
		h.wantMay(bob, conv, nil, nil)
		h.unshare(conv, "bob")
		h.wantMay(bob, conv, nil, forbidden) // like every user of the tenant
		h.unshare(conv, gateway.WholeTenant)
		h.unshare(conv, gateway.WholeTenant) // a repetition succeeds
		for _, p := range []gateway.Principal{bob, guest} {
			h.wantMay(p, conv, foreign, foreign)
			if ids := h.list(p, 0); len(ids) > 0 {
				t.Errorf("%s's list: %v", p.Subject, ids)
			}
		}
		for _, c := range []gateway.Command{
			{Type: gateway.CommandShare, Access: gateway.AccessRead},
			{Type: gateway.CommandShare, Subject: "bob"},
			{Type: gateway.CommandShare, Subject: "bob", Access: "own"},
			{Type: gateway.CommandShare, Subject: "alice", Access: gateway.AccessRead},
			{Type: gateway.CommandShare, Subject: "a\nb", Access: gateway.AccessRead},
			{Type: gateway.CommandShare, Subject: strings.Repeat("s", 300), Access: gateway.AccessRead},
			{Type: gateway.CommandUnshare},
		} {
			h.refused(conv, c, gateway.ReasonInvalid)
		}
		for i := range 100 {
			h.share(conv, fmt.Sprint("guest", i), gateway.AccessRead)
		}
		h.refused(conv, gateway.Command{Type: gateway.CommandShare, Subject: "one more", Access: gateway.AccessRead}, gateway.ReasonTooLarge)
		h.share(conv, "guest7", gateway.AccessWrite) // a changed grant doesn't count twice
		// Deleting the conversation deletes all keys of its grants.
		h.do(conv, gateway.Command{Type: gateway.CommandDelete})
		keys, err := h.journal.Keys(t.Context(), "shared/")
		if err != nil || len(keys) > 0 {
			t.Errorf("left behind: %v, %v", keys, err)
		}
	})
}

func silentAgents() gateway.Agents {
	return one(agentFunc(func(context.Context, agent.Input, *agent.Emitter) error { return nil }))
}

// A guest whose access is revoked is disconnected at once. Other readers continue.
func TestUnshareCuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, silentAgents(), nil)
		defer h.close()
		conv := h.create(alice)
		h.share(conv, "bob", gateway.AccessRead)
		h.share(conv, "carol", gateway.AccessRead)
		ctx, stop := context.WithCancel(t.Context())
		ends := map[string]chan error{}
		for _, p := range []gateway.Principal{alice, bob, guest} {
			f, err := h.Feed(t.Context(), p, conv)
			if err != nil {
				t.Fatal(err)
			}
			end := make(chan error, 1)
			ends[p.Subject] = end
			go func() {
				defer f.Release()
				cursor := f.Cursor()
				for {
					b, err := f.Next(ctx, cursor, 0)
					if err != nil {
						end <- err
						return
					}
					cursor = b.Cursor
				}
			}()
		}
		synctest.Wait()
		h.unshare(conv, "bob")
		synctest.Wait()
		select {
		case err := <-ends["bob"]:
			if !errors.Is(err, gateway.ErrNotFound) {
				t.Errorf("bob's reading ended with %v", err)
			}
		default:
			t.Error("bob can still read")
		}
		h.send(conv, "secret")
		synctest.Wait()
		stop()
		for _, who := range []string{"alice", "carol"} {
			if err := <-ends[who]; !errors.Is(err, context.Canceled) {
				t.Errorf("%s's reading ended with %v", who, err)
			}
		}
		if _, err := h.Feed(t.Context(), bob, conv); !errors.Is(err, gateway.ErrNotFound) {
			t.Errorf("bob comes back: %v", err)
		}
		// A poll fails too.
		f, err := h.Feed(t.Context(), guest, conv)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Release()
		h.unshare(conv, "carol")
		if b, err := f.Poll(t.Context(), "", 0); b != nil || !errors.Is(err, gateway.ErrNotFound) {
			t.Errorf("carol polls %v, %v", b, err)
		}
	})
}

// Messages of guests name their author, and a guest can't write in another user's name.
func TestGuestsSpeakForThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, silentAgents(), nil)
		defer h.close()
		conv := h.create(alice)
		h.share(conv, "bob", gateway.AccessWrite)
		say := func(p gateway.Principal, m gateway.CommandMessage) error {
			return h.try(p, conv, gateway.Command{Type: gateway.CommandSend, Key: "k", Message: &m})
		}
		if err := say(bob, gateway.CommandMessage{Text: "hi", Role: "assistant", Author: &event.Author{ID: "alice", Name: "Bob"}}); err != nil {
			t.Fatal(err)
		}
		// The same key from another user is a conflict, not a repetition.
		var r *gateway.Rejection
		if err := say(alice, gateway.CommandMessage{Text: "hi"}); !errors.As(err, &r) || r.Reason != gateway.ReasonConflict {
			t.Errorf("the same key by another: %v", err)
		}
		h.until(conv, func(tr *transcript.Transcript) bool { return len(tr.Messages) > 0 })
		m := h.view(conv).Messages[0]
		if m.Role != "user" || m.Author == nil || m.Author.ID != "bob" || m.Author.Name != "Bob" {
			t.Errorf("bob's message: %s by %+v", m.Role, m.Author)
		}
	})
}

// The log contains who stopped a turn, until that user's data are redacted.
func TestStopSaysWho(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, one(agentFunc(func(ctx context.Context, _ agent.Input, _ *agent.Emitter) error {
			<-ctx.Done()
			return ctx.Err()
		})), nil)
		defer h.close()
		conv := h.create(alice)
		h.share(conv, "bob", gateway.AccessWrite)
		var turns []string
		for range 4 {
			turns = append(turns, h.send(conv, "go").Turn)
		}
		synctest.Wait()
		// A running turn, two queued ones, and one that is stopped with the gateway's own token, which has no name.
		who := []gateway.Principal{bob, bob, alice, admin}
		for i, p := range who {
			if err := h.try(p, conv, gateway.Command{Type: gateway.CommandStop, Turn: turns[i]}); err != nil {
				t.Fatal(err)
			}
		}
		if err := h.try(alice, conv, gateway.Command{Type: gateway.CommandStop, Turn: turns[0]}); err != nil { // too late
			t.Fatal(err)
		}
		for i, p := range who {
			turn := h.view(conv).Turn(turns[i])
			wantOutcome(t, turn, event.Cancelled, "")
			if turn.StoppedBy != p.Subject {
				t.Errorf("turn %d was stopped by %q, want %q", i, turn.StoppedBy, p.Subject)
			}
		}
		// The event has no text, but it contains bob's name.
		if _, wrote, err := h.Guests().Conversations(t.Context(), admin, "t1", "bob"); err != nil || !slices.Equal(wrote, []string{conv}) {
			t.Errorf("bob is in %v: %v", wrote, err)
		}
		if _, err := h.Guests().Redact(t.Context(), admin, conv, "bob"); err != nil {
			t.Fatal(err)
		}
		r, err := h.journal.Read(t.Context(), conv, 0, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		by := map[string]string{}
		for _, e := range r.Events {
			if e.Type == event.TurnEnd {
				by[e.Turn] = string(e.Get().Outcome) + " " + e.Get().StoppedBy
			}
		}
		for i, want := range []string{"cancelled ", "cancelled ", "cancelled alice", "cancelled "} {
			if by[turns[i]] != want {
				t.Errorf("without bob turn %d is %q, want %q", i, by[turns[i]], want)
			}
		}
	})
}

// The fold of a loaded conversation forgets the answers of a guest together with the log: it would otherwise send them with each snapshot.
func TestRedactedAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, one(agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
			_, err := out.Ask(ctx, event.Request{ID: "q", Kind: event.RequestInput, Prompt: "Who?"})
			return err
		})), nil)
		defer h.close()
		conv := h.create(alice)
		h.share(conv, "bob", gateway.AccessWrite)
		turn := h.send(conv, "go").Turn
		h.until(conv, func(tr *transcript.Transcript) bool { return tr.Turn(turn) != nil && len(tr.Turn(turn).Requests) == 1 })
		if err := h.try(bob, conv, gateway.Command{Type: gateway.CommandAnswer, Turn: turn, Request: "q", Text: "me"}); err != nil {
			t.Fatal(err)
		}
		h.ended(conv, turn)
		answered := func() transcript.AnsweredRequest {
			all := h.view(conv).Turn(turn).Answered
			if len(all) != 1 {
				t.Fatalf("answered: %+v", all)
			}
			return all[0]
		}
		if a := answered(); a.Text != "me" || a.Subject != "bob" || a.Prompt != "Who?" {
			t.Errorf("before: %+v", a)
		}
		if _, err := h.Guests().Redact(t.Context(), admin, conv, "bob"); err != nil {
			t.Fatal(err)
		}
		if a := answered(); a.Text != "" || a.Subject != "" || a.Prompt != "Who?" {
			t.Errorf("after the redaction: %+v", a)
		}
	})
}

// All grants to a subject can be revoked at once, for example when the user leaves.
func TestLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, silentAgents(), nil)
		defer h.close()
		for range 3 {
			h.share(h.create(alice), "bob", gateway.AccessRead)
		}
		kept := h.create(alice)
		h.share(kept, gateway.WholeTenant, gateway.AccessRead)
		if _, err := h.Guests().Unshare(t.Context(), bob, "t1", "bob"); !errors.Is(err, gateway.ErrForbidden) {
			t.Errorf("by a user: %v", err)
		}
		if n, err := h.Guests().Unshare(t.Context(), admin, "t1", "bob"); n != 3 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if ids := h.list(bob, 0); !slices.Equal(ids, []string{kept}) {
			t.Errorf("left: %v", ids)
		}
	})
}

// Each list is complete, in order and without repetitions for every page size, and contains exactly the conversations that Decide lets
// the principal read.
func TestListPages(t *testing.T) {
	who := []gateway.Principal{
		alice, bob, guest, aliceT2,
		{Subject: "alice"}, // without a tenant
		{Tenant: "t2", Subject: "dave"},
	}
	rapid.Check(t, func(rt *rapid.T) {
		h := newTestGateway(t, nil, nil, nil)
		defer h.close()
		var all []string
		for range rapid.IntRange(0, 25).Draw(rt, "conversations") {
			p := rapid.SampledFrom(who).Draw(rt, "owner")
			conv := h.create(p)
			all = append(all, conv)
			for range rapid.IntRange(0, 3).Draw(rt, "grants") {
				to := rapid.SampledFrom([]string{"alice", "bob", "carol", "dave", gateway.WholeTenant}).Draw(rt, "to")
				typ := rapid.SampledFrom([]string{gateway.CommandShare, gateway.CommandShare, gateway.CommandUnshare}).Draw(rt, "type")
				c := gateway.Command{Type: typ, Subject: to}
				if typ == gateway.CommandShare {
					c.Access = gateway.AccessRead
				}
				_, err := h.Do(t.Context(), p, conv, c)
				var r *gateway.Rejection
				if err != nil && !(errors.As(err, &r) && to == p.Subject) {
					rt.Fatal(err)
				}
			}
		}
		for _, p := range append(who, admin) {
			var want []string
			for _, conv := range all {
				if _, err := h.Conversation(t.Context(), p, gateway.ActionRead, conv); err == nil {
					want = append(want, conv)
				}
			}
			whole := h.list(p, 0)
			for _, limit := range []int{1, 2, 5} {
				if got := h.list(p, limit); !slices.Equal(got, whole) {
					rt.Fatalf("%s@%s by %d: %v, the whole is %v", p.Subject, p.Tenant, limit, got, whole)
				}
			}
			slices.Sort(want)
			if got := slices.Sorted(slices.Values(whole)); !slices.Equal(got, want) {
				rt.Fatalf("%s@%s: %v, want %v", p.Subject, p.Tenant, got, want)
			}
		}
	})
}
