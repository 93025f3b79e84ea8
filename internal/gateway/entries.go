package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// What an entry became is stored under a digest of its key: its kind and the id, such as "message/ID" or "turn/ID".
const (
	becameMessage = "message/"
	becameTurn    = "turn/"
	becameNothing = "nothing/" // it had no content
)

func entryKey(conversation, name, key string) string {
	sum := sha256.Sum256([]byte(key))
	return "entry/" + conversation + "/" + name + "/" + hex.EncodeToString(sum[:16])
}

// checkEntries refuses what no conversation can take.
func checkEntries(entries []agent.Entry) error {
	for i := range entries {
		e := &entries[i]
		if e.Key == "" {
			return fmt.Errorf("%w: entry %d has no key", event.ErrInvalid, i)
		}
		if len(e.Key) > agent.MaxKey {
			return fmt.Errorf("%w: entry %d: key of %d bytes, at most %d", event.ErrInvalid, i, len(e.Key), agent.MaxKey)
		}
		if (e.Message == nil) == (e.Run == nil) {
			return fmt.Errorf("%w: entry %q: either a message or a run is needed", event.ErrInvalid, e.Key)
		}
		if err := event.CheckID("source", e.Source); err != nil {
			return fmt.Errorf("entry %q: %w", e.Key, err)
		}
	}
	return nil
}

func checkCursor(cursor json.RawMessage) error {
	switch {
	case len(cursor) > agent.MaxCursor:
		return fmt.Errorf("%w: cursor of %d bytes, at most %d", event.ErrInvalid, len(cursor), agent.MaxCursor)
	case cursor != nil && !json.Valid(cursor):
		return fmt.Errorf("%w: the cursor is not JSON", event.ErrInvalid)
	}
	return nil
}

// resolved is an entry that is about to be committed.
type resolved struct {
	*outside
	answers, parent string // ids, empty if they are unknown here
}

// addEntries commits entries of an agent's session, and the cursor that follows them.
func (o *owner) addEntries(ctx context.Context, name string, a Agent, entries []agent.Entry, cursor json.RawMessage) error {
	if err := o.keepsSession(name); err != nil {
		return err
	}
	out := o.outsides(name)
	var fresh []*outside
	for i := range entries {
		known, err := o.knowsEntry(ctx, name, &entries[i])
		if err != nil {
			return err
		}
		if known {
			continue
		}
		one, err := out.prepare(ctx, &entries[i])
		if err != nil {
			return err
		}
		fresh = append(fresh, one)
	}
	cursor = slices.Clone(cursor) // the caller's
	return o.await(ctx, true, func(t *tx) error { return o.addIn(ctx, t, name, a, fresh, cursor) })
}

// addIn adds to a commit those entries that nobody has added meanwhile.
func (o *owner) addIn(ctx context.Context, t *tx, name string, a Agent, fresh []*outside, cursor json.RawMessage) error {
	ctx = context.WithoutCancel(ctx) // a job that runs is done
	o.mu.Lock()
	left := o.left
	o.mu.Unlock()
	if left {
		return fmt.Errorf("%w: shutting down", ErrUnavailable)
	}
	if err := o.keepsSession(name); err != nil {
		return err
	}
	batch := map[string]string{} // key: what it became
	lookup := func(key string) (string, error) { return o.lookup(name, batch, key) }
	var all []resolved
	for _, one := range fresh {
		known, err := o.knowsEntry(ctx, name, one.entry)
		if err != nil {
			return err
		}
		if known || batch[one.entry.Key] != "" {
			continue
		}
		r := resolved{outside: one}
		if run := one.entry.Run; run != nil {
			if r.answers, err = o.answered(ctx, lookup, run.Answers, batch); err == nil {
				r.parent, err = o.around(lookup, run.Parent)
			}
			if err != nil {
				return err
			}
		}
		batch[one.entry.Key] = one.became()
		all = append(all, r)
	}
	for _, r := range all {
		t.set(entryKey(o.id, name, r.entry.Key), []byte(r.became()), 0)
		switch {
		case r.entry.Message != nil:
			for _, e := range r.said {
				t.add(e)
			}
		case r.ops != nil:
			o.addWhole(t, r, name)
		case len(o.observed) >= maxObserved:
			o.addRefused(t, r, name)
		default:
			o.addLive(t, r, name, a)
		}
	}
	if len(all) > 0 {
		t.edit().Updated = now()
	}
	t.set(cursorKey(o.id, name), cursor, 0)
	return nil
}

// addWhole adds a run that is over as a turn with its end.
func (o *owner) addWhole(t *tx, r resolved, name string) {
	if t.outside == nil {
		t.outside = map[string]bool{}
	}
	events, dropped := r.whole(name, r.answers, r.parent)
	if dropped > 0 {
		o.g.cfg.Metrics.dropped.WithLabelValues(name).Add(float64(dropped))
		o.log.Warn("operations of the turn were dropped", "turn", r.id, "agent", name, "without_effect", dropped)
	}
	for _, e := range events {
		if t.outside[e.Turn] = true; e.Type == event.TurnStart {
			t.set(turnKey(e.Turn), []byte(o.id), 0)
		}
		t.add(e)
	}
	t.terminal = true
	if len(t.current().Open) == 0 {
		t.then(func() { o.g.settle.add(o.id, o.head) })
	}
}

// addLive adds a run that goes on, and observes it once that is committed.
func (o *owner) addLive(t *tx, r resolved, name string, a Agent) {
	run := o.newRun(r.id, name, a, o.observedInput(r.id, r.entry.Key))
	t.add(r.start(name, r.answers, r.parent))
	s := t.edit()
	s.Open = append(s.Open, r.id)
	t.set(turnKey(r.id), []byte(o.id), 0)
	t.set(observedKey(r.id), mark{Key: r.entry.Key}.json(), 0)
	if r.entry.Run.State != nil {
		t.set(stateKey(r.id), slices.Clone(r.entry.Run.State), 0)
	}
	o.observe(run)
	o.watch.runs(run, false)
	o.observing(t, run, a.Agent.(agent.Follower), r.answers, slices.Clone(r.entry.Run.State))
}

// lookup returns what an entry has become, in the commit that is being made or before it.
func (o *owner) lookup(name string, batch map[string]string, key string) (string, error) {
	if v := batch[key]; v != "" || key == "" {
		return v, nil
	}
	return o.became(name, key)
}

// answered returns the id of the message that a run answers.
func (o *owner) answered(ctx context.Context, lookup func(string) (string, error), key string, batch map[string]string) (string, error) {
	v, err := lookup(key)
	if err != nil || key == "" {
		return "", err
	}
	id, ok := strings.CutPrefix(v, becameMessage)
	if ok && batch[key] != "" {
		return id, nil // it is added by the same commit
	}
	id = cmp.Or(id, key)
	there, err := o.hasMessage(ctx, id) // it may have been truncated
	if err != nil || !there {
		return "", err
	}
	return id, nil
}

// around returns the id of the turn that started a run.
func (o *owner) around(lookup func(string) (string, error), key string) (string, error) {
	v, err := lookup(key)
	if err != nil || key == "" {
		return "", err
	}
	if id, ok := strings.CutPrefix(v, becameTurn); ok {
		return id, nil
	}
	if o.knows(key) {
		return key, nil
	}
	return "", nil
}

// keepsSession returns an error that wraps [agent.ErrNoSession] if the conversation keeps no session with the agent.
func (o *owner) keepsSession(name string) error {
	_, err := o.g.journal.Get(o.g.life, sessionKey(o.id, name))
	if errors.Is(err, journal.ErrNotFound) {
		return agent.ErrNoSession
	}
	if err != nil {
		return fmt.Errorf("gateway: look up session: %w", err)
	}
	return nil
}

// became returns what an entry has become in this conversation; empty if it was not added.
func (o *owner) became(name, key string) (string, error) {
	v, err := o.g.journal.Get(o.g.life, entryKey(o.id, name, key))
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		return "", fmt.Errorf("gateway: look up entry: %w", err)
	}
	return string(v), nil
}

// knowsEntry reports whether the conversation has an entry already: it was added before, or its key is the id of one of the
// conversation's own turns or messages, which come back from upstream, or that of the upstream run of a turn in progress.
func (o *owner) knowsEntry(ctx context.Context, name string, e *agent.Entry) (bool, error) {
	if v, err := o.became(name, e.Key); err != nil || v != "" {
		return v != "", err
	}
	if o.knows(e.Key) || e.Run != nil && o.shows(name, e.Key) {
		return true, nil
	}
	return o.hasMessage(ctx, e.Key)
}

// shows reports whether a turn in progress has an upstream run. The agent itself may not know: after a restart the turn is not resumed
// yet, and after a change of the configuration it is that of another instance.
func (o *owner) shows(name, run string) (found bool) {
	o.feed.View(func(tr *transcript.Transcript) {
		found = slices.ContainsFunc(tr.Turns, func(t *transcript.Turn) bool {
			return t.Agent == name && t.Unfinished() && t.Upstream != nil && t.Upstream.Run == run
		})
	})
	return found
}

// hasMessage reports whether the conversation has a message of that id, however old.
func (o *owner) hasMessage(ctx context.Context, id string) (bool, error) {
	if !o.free(id) {
		return true, nil
	}
	there, err := o.older.has(ctx, o, id)
	if err != nil {
		return false, journalError("look for message", err)
	}
	return there, nil
}
