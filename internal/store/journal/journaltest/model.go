// Random operations on a journal and on a simple model of it, which must agree after each step.

package journaltest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

// testModel compares a journal with a simple model during random calls. All runs share one journal, so that each one also meets
// the data of the earlier ones.
func testModel(t *testing.T, open Open) {
	j := start(t, open)
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		m := newModel(fmt.Sprint("run", run))
		// Repeat calls a random action at each step, and on a failure searches for a shorter sequence with the same result.
		rt.Repeat(m.actions(j))
	})
}

// RunDurable compares a journal with a model as [Run] does, and also closes and reopens it at random moments. open opens the
// store in a folder, or creates it.
//
// Reopening must lose nothing and change no sizes. It is rare compared with the other actions, so that the journal reaches states
// with several compacted and trimmed parts between two openings.
func RunDurable(t *testing.T, open func(dir string) (journal.Journal, error)) {
	dir := t.TempDir()
	j, err := open(dir)
	must(t, err)
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		m := newModel(fmt.Sprint("run", run))
		rt.Repeat(map[string]func(*rapid.T){
			// The actions are built at each step, because a reopening replaces j.
			"step": func(rt *rapid.T) {
				actions := m.actions(j)
				delete(actions, "")
				actions[rapid.SampledFrom(slices.Sorted(maps.Keys(actions))).Draw(rt, "action")](rt)
			},
			"reopen": func(rt *rapid.T) {
				if rapid.IntRange(0, 4).Draw(rt, "really") > 0 {
					rt.Skip("reopening is rare")
				}
				// A journal counts the bytes in memory, so it has to count them again when it is opened.
				bytesBefore, _ := j.StoredBytes(m.tenant, "")
				if err := j.Close(); err != nil {
					rt.Fatalf("close: %v", err)
				}
				reopened, err := open(dir)
				if err != nil {
					rt.Fatalf("open again: %v", err)
				}
				j = reopened
				if bytesAfter, _ := j.StoredBytes(m.tenant, ""); bytesAfter != bytesBefore {
					rt.Fatalf("%d bytes are stored, %d before Close", bytesAfter, bytesBefore)
				}
			},
			"": func(rt *rapid.T) { m.check(rt, j) },
		})
	})
}

// model is the expected content of one tenant: a simple second implementation of the journal, in maps. The journal is correct if every read
// agrees with the model after every call. Each run has its own tenant and key prefix, so that runs can share a journal without interfering.
type model struct {
	tenant string
	logs   map[string]*modelLog
	keys   map[string]modelKey
	names  int // conversations created so far, also the deleted ones
}

// modelLog is the expected state of one conversation. Its writer has the log as written, never compacted, so the folds are compared
// instead of the events below compacted.
type modelLog struct {
	w                  Writer
	compacted, trimmed int64
	title              string
	updated            int64
	epoch              string // chosen by the journal at the creation; must never change
	deleted            bool   // the id stays in the model, because it must not be usable again
}

// modelKey is the expected value of a key and the conversation that wrote it last, with which it is deleted.
type modelKey struct{ value, conversation string }

func newModel(tenant string) *model {
	return &model{tenant: tenant, logs: map[string]*modelLog{}, keys: map[string]modelKey{}}
}

// anyLog returns a random conversation, deleted or not.
func (m *model) anyLog(rt *rapid.T) (string, *modelLog) {
	if len(m.logs) == 0 {
		rt.Skip("no conversation")
	}
	id := rapid.SampledFrom(slices.Sorted(maps.Keys(m.logs))).Draw(rt, "conversation")
	return id, m.logs[id]
}

// existingLog returns a random conversation that isn't deleted.
func (m *model) existingLog(rt *rapid.T) (string, *modelLog) {
	id, l := m.anyLog(rt)
	if l.deleted {
		rt.Skip("deleted")
	}
	return id, l
}

// actions are the random calls. Each draws its parameters, calls the journal, and makes the same change in the model. An action that isn't
// possible in the current state skips itself. Rapid runs the action without a name after each of the others: it checks the journal.
//
// Only valid calls change the model. "append wrongly" makes a call that must be refused, and its key must not be stored.
func (m *model) actions(j journal.Journal) map[string]func(*rapid.T) {
	ctx := context.Background()
	return map[string]func(*rapid.T){
		"create": func(rt *rapid.T) {
			// Few conversations and few keys make it likely that an action meets the traces of an earlier one.
			if m.names > 4 {
				rt.Skip("enough")
			}
			m.names++
			id := fmt.Sprint(m.tenant, "-", m.names)
			l := &modelLog{title: "new", updated: int64(m.names)}
			s := journal.Summary{Tenant: m.tenant, Title: l.title, Updated: l.updated}
			must(rt, j.Append(ctx, journal.Batch{Conversation: id, Create: true, Summary: &s}))
			l.epoch = readAll(rt, j, id, 0).Epoch
			m.logs[id] = l
		},
		"append": func(rt *rapid.T) {
			id, l := m.existingLog(rt)
			l.w.Pick = func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "pick") }
			b := journal.Batch{Conversation: id, Expected: int64(len(l.w.Log))}
			// Zero steps give a batch without events, which may still have keys and a summary.
			for range rapid.IntRange(0, 8).Draw(rt, "steps") {
				l.w.Next()
			}
			b.Events = l.w.Log[b.Expected:]
			for range rapid.IntRange(0, 2).Draw(rt, "puts") {
				kv := journal.KeyValue{Key: fmt.Sprint(m.tenant, "/", rapid.IntRange(0, 5).Draw(rt, "key"))}
				if rapid.Bool().Draw(rt, "set") {
					kv.Value = fmt.Append(nil, rapid.IntRange(0, 99).Draw(rt, "value"))
					m.keys[kv.Key] = modelKey{string(kv.Value), id}
				} else {
					// A key that doesn't exist may be deleted too. That isn't an error.
					delete(m.keys, kv.Key)
				}
				b.Keys = append(b.Keys, kv)
			}
			if rapid.Bool().Draw(rt, "summary") {
				l.title, l.updated = fmt.Sprint("title", len(l.w.Log)), l.updated+int64(rapid.IntRange(0, 3).Draw(rt, "later"))
				b.Summary = &journal.Summary{Tenant: m.tenant, Title: l.title, Updated: l.updated}
			}
			must(rt, j.Append(ctx, b))
		},
		"append wrongly": func(rt *rapid.T) {
			id, l := m.anyLog(rt)
			b := journal.Batch{Conversation: id, Expected: int64(len(l.w.Log)) + 1, Keys: []journal.KeyValue{{Key: m.tenant + "/0", Value: []byte("wrong")}}}
			// A deleted conversation is reported as such, whatever the batch expects.
			want := journal.ErrFenced
			if l.deleted {
				want = journal.ErrDeleted
			}
			if err := j.Append(ctx, b); !errors.Is(err, want) {
				rt.Fatalf("%v, want %v", err, want)
			}
		},
		"compact": func(rt *rapid.T) {
			id, l := m.existingLog(rt)
			if l.w.Open > 0 {
				rt.Skip("a turn runs")
			}
			compact(rt, j, id, int64(len(l.w.Log)))
			l.compacted = int64(len(l.w.Log))
		},
		"trim": func(rt *rapid.T) {
			id, l := m.existingLog(rt)
			upto := int64(rapid.IntRange(0, len(l.w.Log)).Draw(rt, "upto"))
			if rapid.IntRange(0, 3).Draw(rt, "really") > 0 {
				rt.Skip("trims are rare")
			}
			must(rt, j.Trim(ctx, id, upto))
			// A trim below an earlier one has no effect.
			l.trimmed = max(l.trimmed, upto)
		},
		"delete": func(rt *rapid.T) {
			id, l := m.anyLog(rt)
			if rapid.IntRange(0, 3).Draw(rt, "really") > 0 {
				rt.Skip("deletes are rare")
			}
			must(rt, j.Delete(ctx, id))
			l.deleted = true
			// A key belongs to the conversation that wrote it last, so another conversation may have taken it over before the delete.
			maps.DeleteFunc(m.keys, func(_ string, k modelKey) bool { return k.conversation == id })
		},
		"": func(rt *rapid.T) { m.check(rt, j) },
	}
}

// check compares everything that can be read with the model: the listing with its order and all summaries, each log, the keys, and whether
// stored bytes are counted at all. Exact sizes depend on the implementation.
func (m *model) check(t rapid.TB, j journal.Journal) {
	ctx := context.Background()
	var want []journal.Summary
	for id, l := range m.logs {
		r, err := j.Read(ctx, id, 0, 0)
		if l.deleted {
			if !errors.Is(err, journal.ErrDeleted) {
				t.Fatalf("read of deleted %s: %v", id, err)
			}
			continue
		}
		must(t, err)
		m.checkLog(t, id, l, r)
		want = append(want, journal.Summary{
			ID: id, Tenant: m.tenant, Title: l.title, Updated: l.updated, Epoch: l.epoch, Head: int64(len(l.w.Log)), Compacted: l.compacted, Trimmed: l.trimmed,
		})
	}
	owner, tenant := j.StoredBytes(m.tenant, "")
	// All conversations of the model have the same owner, with an empty name, so both counts are equal.
	if owner != tenant || (owner > 0) != (len(want) > 0) {
		t.Fatalf("%d conversations take %d bytes, and their tenant %d", len(want), owner, tenant)
	}
	got, err := j.Conversations(ctx, journal.Query{Tenant: m.tenant})
	must(t, err)
	slices.SortFunc(want, func(a, b journal.Summary) int { return a.Compare(&b) })
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("conversations (-want +got):\n%s", d)
	}
	keys, err := j.Keys(ctx, m.tenant+"/")
	must(t, err)
	have := map[string]string{}
	for _, kv := range keys {
		have[kv.Key] = string(kv.Value)
	}
	for k, v := range m.keys {
		if have[k] != v.value {
			t.Fatalf("%s = %q, want %q", k, have[k], v.value)
		}
	}
	// The keys of the model were found above. A different number means that a deleted key is still listed.
	if len(have) != len(m.keys) {
		t.Fatalf("keys %v, want %v", have, m.keys)
	}
}

// checkLog compares one log with the model. After a trim, the remaining events don't fold on their own, so only the events above
// compacted are compared.
func (m *model) checkLog(t rapid.TB, id string, l *modelLog, r journal.Range) {
	if r.Compacted != l.compacted || r.Trimmed != l.trimmed || r.Epoch != l.epoch || r.Head != int64(len(l.w.Log)) {
		t.Fatalf("%s: compacted %d, trimmed %d, head %d, epoch %s; want %d, %d, %d, %s", id, r.Compacted, r.Trimmed, r.Head, r.Epoch, l.compacted, l.trimmed, len(l.w.Log), l.epoch)
	}
	if l.trimmed == 0 {
		checkRange(t, r, l.w.Log)
		return
	}
	var current []event.Event
	for _, e := range r.Events {
		if e.Seq <= l.trimmed {
			t.Fatalf("%s: event %d still exists, trimmed to %d", id, e.Seq, l.trimmed)
		}
		if e.Seq > l.compacted {
			current = append(current, e)
		}
	}
	sameEvents(t, id+": live part", current, l.w.Log[max(l.compacted, l.trimmed):])
}
