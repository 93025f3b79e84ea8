package data_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/data"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/journaltest"
	"github.com/leat-dev/leat/transcript"
)

// ofConversation adapts random events to a conversation. Ids of turns get the conversation's id as a prefix, because they must be unique.
// Records become updates, because only the gateway's own logs have records.
func ofConversation(id string, events []event.Event) (out []event.Event) {
	for _, e := range events {
		if e.Turn != "" {
			e.Turn = id + e.Turn
		}
		b := *e.Get()
		switch {
		case e.Type == event.Record:
			e.Type, b = event.ConversationUpdate, event.Body{Metadata: map[string]json.RawMessage{"k": json.RawMessage("1")}}
		case b.Parent != "":
			b.Parent = id + b.Parent
		}
		if e.Body != nil {
			e.Body = &b
		}
		out = append(out, e)
	}
	return out
}

// written creates a conversation of random events of every kind, partly compacted.
func (h *harness) written(id string, seed uint64, n int) {
	h.t.Helper()
	w := journaltest.Writer{Pick: journaltest.Seeded(seed)}
	s := journal.Summary{Tenant: alice.Tenant, Owner: alice.Subject, Unlisted: seed%2 == 1, Created: 1, Updated: int64(1000 + seed), Title: "t" + id}
	b := journal.Batch{Conversation: id, Create: true, Summary: &s}
	for len(w.Log) < n {
		b.Expected = int64(len(w.Log))
		b.Events = ofConversation(id, w.Next())
		if err := h.journal.Append(h.t.Context(), b); err != nil {
			h.t.Fatal(err)
		}
		b.Create, b.Summary = false, nil
	}
	b.Expected = int64(len(w.Log))
	if b.Events = ofConversation(id, w.Finish()); len(b.Events) > 0 {
		if err := h.journal.Append(h.t.Context(), b); err != nil {
			h.t.Fatal(err)
		}
	}
}

// fold returns the transcript without seqs, which differ between gateways.
func (h *harness) fold(id string) string {
	h.t.Helper()
	r, err := h.journal.Read(h.t.Context(), id, 0, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	var t transcript.Transcript
	for i := range r.Events {
		if err := t.Apply(&r.Events[i]); err != nil {
			h.t.Fatal(err)
		}
	}
	type view struct {
		Title    string
		Metadata map[string]json.RawMessage
		Messages []*transcript.Message
		Turns    []*transcript.Turn
		Visible  []string
	}
	v := view{Title: t.Title, Metadata: t.Metadata, Messages: t.Messages, Turns: t.Turns}
	for _, m := range t.Messages {
		v.Visible = append(v.Visible, m.Visible())
	}
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		h.t.Fatal(err)
	}
	return seqs.ReplaceAllString(string(b), "")
}

var seqs = regexp.MustCompile(`\s*"(firstSeq|endSeq)": \d+,?`)

// An import into another gateway, exported again, has the same lines and transcripts, and another epoch.
func TestRoundTrip(t *testing.T) {
	h, other := newHarness(t, nil), newHarness(t, nil)
	defer h.close()
	defer other.close()
	var ids []string
	for i := range 6 {
		id, err := gateway.ConversationID(alice.Tenant, fmt.Sprint("c", i))
		if err != nil {
			t.Fatal(err)
		}
		h.written(id, uint64(i), 20+60*i)
		ids = append(ids, id)
	}
	ids = append(ids, h.talk(alice, "b", "hello"))
	h.talk(bob, "", "bob's own")
	// An imported conversation is compacted at some time; here it is before the second export.
	if err := h.journal.Compact(t.Context(), ids[len(ids)-1], 1<<40); err != nil {
		t.Fatal(err)
	}
	first := h.export(admin, subject(alice))
	if got := other.load(first); got.Imported != len(ids) || got.RefusedCount+got.Unchanged != 0 {
		t.Fatalf("import: %+v", got)
	}
	for _, id := range ids {
		if d := cmp.Diff(h.fold(id), other.fold(id)); d != "" {
			t.Errorf("transcript of %s (-exported +imported):\n%s", id, d)
		}
	}
	second := other.export(admin, subject(alice))
	if d := cmp.Diff(first[1:], second[1:]); d != "" {
		t.Errorf("second export (-first +second):\n%s", d)
	}
	for _, id := range ids {
		a, err := h.journal.Conversation(t.Context(), id)
		b, berr := other.journal.Conversation(t.Context(), id)
		if err != nil || berr != nil || a.Epoch == b.Epoch || a.Updated != b.Updated {
			t.Errorf("%s: %+v and %+v, %v, %v", id, a, b, err, berr)
		}
	}
	if got := other.load(first); got.Unchanged != len(ids) || got.RefusedCount+got.Imported != 0 {
		t.Errorf("second import: %+v", got)
	}
	if got := h.load(first); got.RefusedCount != len(ids) {
		t.Errorf("import into the exporting gateway: %+v", got)
	}
	// An imported conversation can be continued.
	other.say(alice, ids[0], "more")
	// A subject may export its own data, but not that of others.
	if got := h.export(alice, subject(alice)); len(got) != len(first) {
		t.Errorf("the export by alice has %d lines, want %d", len(got), len(first))
	}
	for _, of := range []data.Subject{subject(alice), {Tenant: "other", Subject: bob.Subject}, {Tenant: "acme"}} {
		if err := data.NewExporter(h.Gateway, h.journal, nil).Export(t.Context(), bob, of, func([]byte) error {
			t.Errorf("bob gets lines of the export of %v", of)
			return nil
		}); err == nil {
			t.Errorf("bob exported %v", of)
		}
	}
	if strings.Contains(strings.Join(first, "\n"), "bob") {
		t.Error("bob is in the export of alice")
	}
}

func TestImportRefuses(t *testing.T) {
	h := newHarness(t, nil)
	defer h.close()
	const (
		head  = `{"type":"export","version":1,"at":1,"subject":"s"}`
		conv  = `{"type":"conversation","id":"c","owner":"s","created":1,"updated":2}`
		start = `{"type":"event","event":{"at":5,"turn":"t1","type":"turn.start","agent":"a"}}`
		full  = `{"type":"end","conversations":1,"events":1}`
	)
	for name, lines := range map[string][]string{
		"nothing":        {},
		"no header":      {conv},
		"newer version":  {`{"type":"export","version":2}`},
		"no JSON":        {head, "{"},
		"no end":         {head, conv, start},
		"wrong counts":   {head, `{"type":"conversation","id":"whole"}`, full},
		"a lone event":   {head, start},
		"no event":       {head, conv, `{"type":"event"}`},
		"two exports":    {head, head},
		"no object":      {head, "[]"},
		"bad conv":       {head, `{"type":"conversation","id":7}`},
		"an end in vain": {head, `{"type":"end","conversations":"x"}`},
	} {
		_, err := data.NewImporter(h.Gateway).Import(t.Context(), admin, strings.NewReader(strings.Join(lines, "\n")))
		if !errors.Is(err, data.ErrFile) || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%s: %v", name, err)
		}
		if got := h.lists(admin); slices.Contains(got, "c") {
			t.Errorf("%s: %v was created", name, got)
		}
	}
	if _, err := data.NewImporter(h.Gateway).Import(t.Context(), alice, strings.NewReader(head)); !errors.Is(err, gateway.ErrForbidden) {
		t.Errorf("import by a user: %v", err)
	}
	one := func(conv string, events ...string) data.Importing {
		t.Helper()
		lines := append([]string{head, conv}, events...)
		return h.load(append(lines, fmt.Sprintf(`{"type":"end","conversations":1,"events":%d}`, len(events))))
	}
	for name, bad := range map[string][]string{
		"id":             {`{"type":"conversation","id":"$audit"}`},
		"no id":          {`{"type":"conversation"}`},
		"path":           {`{"type":"conversation","id":"a/b"}`},
		"record":         {`{"type":"conversation","id":"x"}`, `{"type":"event","event":{"type":"record","kind":"k"}}`},
		"delete":         {`{"type":"conversation","id":"x"}`, `{"type":"event","event":{"type":"conversation.delete"}}`},
		"unknown":        {`{"type":"conversation","id":"x"}`, `{"type":"event","event":{"type":"what"}}`},
		"does not apply": {`{"type":"conversation","id":"x"}`, `{"type":"event","event":{"type":"message.start","message":"m","role":"user"}}`, `{"type":"event","event":{"type":"part.start","message":"m","part":"p","kind":"text"}}`, `{"type":"event","event":{"type":"part.append","message":"m","part":"p","offset":9,"text":"a"}}`},
	} {
		if got := one(bad[0], bad[1:]...); got.RefusedCount != 1 || got.Refusals[0].Reason != gateway.ReasonInvalid {
			t.Errorf("%s: %+v", name, got)
		}
	}
	// An unfinished turn of an export is ended by the import. Its id is taken afterwards.
	if got := one(`{"type":"conversation","id":"u","owner":"s"}`, start); got.Imported != 1 {
		t.Fatalf("%+v", got)
	}
	_, turn, err := h.Turn(t.Context(), admin, gateway.ActionRead, "t1")
	if err != nil || turn.Outcome != event.Interrupted {
		t.Errorf("the turn: %+v, %v", turn, err)
	}
	if got := one(`{"type":"conversation","id":"v","owner":"s"}`, start); got.RefusedCount != 1 || got.Refusals[0].Reason != gateway.ReasonConflict {
		t.Errorf("import with a turn id of another conversation: %+v", got)
	}
	// The id of a deleted conversation stays taken.
	if _, err := h.Do(t.Context(), admin, "u", gateway.Command{Type: gateway.CommandDelete}); err != nil {
		t.Fatal(err)
	}
	if got := one(`{"type":"conversation","id":"u","owner":"s"}`, start); got.RefusedCount != 1 || !strings.Contains(got.Refusals[0].Message, "deleted") {
		t.Errorf("import with the id of a deleted conversation: %+v", got)
	}
}

// While an export runs, one conversation is deleted and others are compacted and written. Each exported conversation is consistent.
func TestExportDuringChanges(t *testing.T) {
	h := newHarness(t, nil)
	defer h.close()
	h.written("late", 1, 400)
	h.written("gone", 2, 400) // changed later, so it comes first
	other := newHarness(t, nil)
	defer other.close()
	var lines []string
	n := 0
	err := data.NewExporter(h.Gateway, h.journal, nil).Export(t.Context(), admin, subject(alice), func(b []byte) error {
		lines = append(lines, string(b))
		if n++; n == 5 {
			h.say(alice, "late", "before its turn")
			if _, err := h.Do(context.Background(), admin, "gone", gateway.Command{Type: gateway.CommandDelete}); err != nil {
				t.Error(err)
			}
		}
		if strings.Contains(string(b), `"id":"late"`) {
			h.say(alice, "late", "too late")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(lines, "\n")
	if !strings.Contains(all, "before its turn") || strings.Contains(all, "too late") {
		t.Error("the second conversation has events that were committed after its first line")
	}
	if got := other.load(lines); got.RefusedCount != 0 || got.Imported+got.Unchanged < 1 {
		t.Errorf("import: %+v", got)
	}
	stop := errors.New("stop")
	if err := data.NewExporter(h.Gateway, h.journal, nil).Export(t.Context(), admin, subject(alice), func([]byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("export to a reader that fails: %v", err)
	}
}

// A conversation that moves to the front of the list during an export, because it changes, is exported once.
func TestExportIncludesChangedConversations(t *testing.T) {
	h := newHarness(t, nil)
	defer h.close()
	const n = 120 // more than are listed at once
	for i := range n {
		h.written(fmt.Sprint("c", i), uint64(i), 1) // the higher, the later it was changed
	}
	begun := map[string]int{}
	err := data.NewExporter(h.Gateway, h.journal, nil).Export(t.Context(), alice, subject(alice), func(line []byte) error {
		var l struct{ Type, ID string }
		if err := json.Unmarshal(line, &l); err != nil || l.Type != "conversation" {
			return err
		}
		if begun[l.ID]++; len(begun) == 1 {
			h.say(alice, "c0", "now it is the newest")
		}
		return nil
	})
	if err != nil || begun["c0"] != 1 || len(begun) != n {
		t.Errorf("%v; %d conversations were exported, and the changed one %d times", err, len(begun), begun["c0"])
	}
}
