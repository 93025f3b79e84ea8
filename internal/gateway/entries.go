// What an agent's follower reports becomes messages and turns of the conversation. Each entry is added once: its key is stored in
// the commit that adds it.

package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// maxObserved limits the unfinished observed turns of one conversation. Each needs a goroutine and whatever its agent needs to
// read the run.
const maxObserved = 64

// checkEntries returns an error if an entry can't be added to any conversation.
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
			return fmt.Errorf("%w: entry %q: either a message or a run is required", event.ErrInvalid, e.Key)
		}
		if err := event.CheckID("source", e.Source); err != nil {
			return fmt.Errorf("entry %q: %w", e.Key, err)
		}
	}
	return nil
}

// checkCursor returns an error if a cursor is too large or not JSON.
func checkCursor(cursor json.RawMessage) error {
	switch {
	case len(cursor) > agent.MaxCursor:
		return fmt.Errorf("%w: cursor of %d bytes, at most %d", event.ErrInvalid, len(cursor), agent.MaxCursor)
	case cursor != nil && !json.Valid(cursor):
		return fmt.Errorf("%w: the cursor is not JSON", event.ErrInvalid)
	}
	return nil
}

// resolved is an entry that is about to be committed, with the ids of what it refers to.
type resolved struct {
	*outside
	answers, parent string // ids, empty if they are unknown here
}

// sessionEntries adds the entries of an agent's session to a conversation, in its writer. Methods with a tx run in the writer's
// goroutine.
type sessionEntries struct{ *writer }

// addEntries commits new entries of an agent's session, together with the cursor that follows them. Files are stored before the
// job is queued, because that can take long.
func (w sessionEntries) addEntries(ctx context.Context, name string, a Agent, entries []agent.Entry, cursor json.RawMessage) error {
	if err := w.keepsSession(name); err != nil {
		return err
	}
	// Known entries are skipped before their files are stored. Another call may add the same entries meanwhile, so addIn checks
	// again.
	// Files are stored on behalf of the conversation's owner.
	preparer := outsides{maxMessage: w.core.settings().MaxMessage, files: w.core.attachments.OfTurn(w.writer, w.owner)}
	var newEntries []*outside
	for i := range entries {
		isKnown, err := w.knowsEntry(ctx, name, &entries[i])
		if err != nil {
			return err
		}
		if isKnown {
			continue
		}
		prepared, err := preparer.prepare(ctx, &entries[i])
		if err != nil {
			return err
		}
		newEntries = append(newEntries, prepared)
	}
	cursor = slices.Clone(cursor) // the caller may change it
	return w.await(ctx, true, func(t *tx) error { return w.addIn(ctx, t, name, a, newEntries, cursor) })
}

// addIn adds to a commit the entries that no other call has added meanwhile.
func (w sessionEntries) addIn(ctx context.Context, t *tx, name string, a Agent, newEntries []*outside, cursor json.RawMessage) error {
	ctx = context.WithoutCancel(ctx) // a job that has started is completed
	if w.turns.paused() {
		return fmt.Errorf("%w: shutting down", ErrUnavailable)
	}
	if err := w.keepsSession(name); err != nil {
		return err
	}
	// Entries of one call may refer to each other: a run answers a message that comes before it in the same batch.
	batch := map[string]string{} // what each entry became, by key
	lookup := func(key string) (string, error) { return w.lookup(name, batch, key) }
	var entries []resolved
	for _, prepared := range newEntries {
		isKnown, err := w.knowsEntry(ctx, name, prepared.entry)
		if err != nil {
			return err
		}
		if isKnown || batch[prepared.entry.Key] != "" {
			continue
		}
		r := resolved{outside: prepared}
		if run := prepared.entry.Run; run != nil {
			if r.answers, err = w.answeredMessage(ctx, lookup, run.Answers, batch); err == nil {
				r.parent, err = w.around(lookup, run.Parent)
			}
			if err != nil {
				return err
			}
		}
		batch[prepared.entry.Key] = prepared.became()
		entries = append(entries, r)
	}
	for _, r := range entries {
		t.setKey(journalkey.Entry(w.id, name, r.entry.Key), []byte(r.became()), 0)
		switch {
		case r.entry.Message != nil:
			for _, e := range r.events {
				t.add(e)
			}
		case r.ops != nil:
			w.addWhole(t, r, name)
		case len(w.turns.observedTurns) >= maxObserved:
			w.addRefused(t, r, name)
		default:
			w.addLive(t, r, name, a)
		}
	}
	if len(entries) > 0 {
		t.edit().Updated = nowMillis()
	}
	// In the same commit as the entries: after a crash the agent continues exactly after the last entry that is in the log.
	t.setKey(journalkey.Cursor(w.id, name), cursor, 0)
	return nil
}

// addWhole adds a run that is over, as a turn with its end.
func (w sessionEntries) addWhole(t *tx, r resolved, name string) {
	if t.outside == nil {
		t.outside = map[string]bool{}
	}
	events, droppedOps := r.completeTurn(name, r.answers, r.parent)
	if droppedOps > 0 {
		w.core.metrics.droppedOps.WithLabelValues(name).Add(float64(droppedOps))
		w.log.Warn("operations of the turn were dropped", "turn", r.id, "agent", name, "without_effect", droppedOps)
	}
	for _, e := range events {
		if t.outside[e.Turn] = true; e.Type == event.TurnStart {
			t.setKey(journalkey.Turn(e.Turn), []byte(w.id), 0)
		}
		t.add(e)
	}
	t.terminal = true
	if len(t.current().Open) == 0 {
		t.afterCommit(func() { w.core.compactor.add(w.id, w.head) })
	}
}

// addLive adds a run that is in progress, and observes it once that is committed.
func (w sessionEntries) addLive(t *tx, r resolved, name string, a Agent) {
	tn := w.newTurn(r.id, name, a, w.owner)
	tn.isObserved = true
	t.add(r.start(name, r.answers, r.parent))
	s := t.edit()
	s.Open = append(s.Open, r.id)
	t.setKey(journalkey.Turn(r.id), []byte(w.id), 0)
	// With this key a restart finds the run again, and a turn inside another one is known to outlive it.
	t.setKey(journalkey.TurnObserved(r.id), observedTurn{Key: r.entry.Key}.json(), 0)
	if r.entry.Run.State != nil {
		t.setKey(journalkey.TurnState(r.id), slices.Clone(r.entry.Run.State), 0)
	}
	tn.prepare(false, false)
	w.startObserved(t, tn, r.entry.Key, r.answers, slices.Clone(r.entry.Run.State))
}

// lookup returns what an entry has become, in this commit or an earlier one.
func (w sessionEntries) lookup(name string, batch map[string]string, key string) (string, error) {
	if v := batch[key]; v != "" || key == "" {
		return v, nil
	}
	return w.became(name, key)
}

// answeredMessage returns the id of the message that a run answers, or "" if the conversation doesn't have it.
func (w sessionEntries) answeredMessage(ctx context.Context, lookup func(string) (string, error), key string, batch map[string]string) (string, error) {
	v, err := lookup(key)
	if err != nil || key == "" {
		return "", err
	}
	id, ok := strings.CutPrefix(v, becameMessage)
	if ok && batch[key] != "" {
		return id, nil // it is added by the same commit
	}
	id = cmp.Or(id, key)
	there, err := w.hasMessage(ctx, id) // it may have been truncated
	if err != nil || !there {
		return "", err
	}
	return id, nil
}

// around returns the id of the turn that started a run, or "" if the conversation doesn't have it.
func (w sessionEntries) around(lookup func(string) (string, error), key string) (string, error) {
	v, err := lookup(key)
	if err != nil || key == "" {
		return "", err
	}
	if id, ok := strings.CutPrefix(v, becameTurn); ok {
		return id, nil
	}
	if w.hasTurn(key) {
		return key, nil
	}
	return "", nil
}

// keepsSession returns an error that wraps [agent.ErrNoSession] if the conversation keeps no session with the agent.
func (w sessionEntries) keepsSession(name string) error {
	_, err := w.core.journal.Get(w.core.life, journalkey.Session(w.id, name))
	if errors.Is(err, journal.ErrNotFound) {
		return agent.ErrNoSession
	}
	if err != nil {
		return fmt.Errorf("gateway: look up session: %w", err)
	}
	return nil
}

// became returns what an entry has become in this conversation; empty if it was not added.
func (w sessionEntries) became(name, key string) (string, error) {
	v, err := w.core.journal.Get(w.core.life, journalkey.Entry(w.id, name, key))
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		return "", fmt.Errorf("gateway: look up entry: %w", err)
	}
	return string(v), nil
}

// knowsEntry reports whether the conversation has an entry already: it was added before, or its key is the id of one of the
// conversation's own turns or messages, which come back from upstream, or that of the upstream run of a turn in progress.
func (w sessionEntries) knowsEntry(ctx context.Context, name string, e *agent.Entry) (bool, error) {
	if v, err := w.became(name, e.Key); err != nil || v != "" {
		return v != "", err
	}
	if w.hasTurn(e.Key) || e.Run != nil && w.showsUpstreamRun(name, e.Key) {
		return true, nil
	}
	return w.hasMessage(ctx, e.Key)
}

// showsUpstreamRun reports whether an unfinished turn shows an upstream run. The agent itself may not know: after a restart the
// turn may not be resumed yet, or the configuration may have another instance of the agent.
func (w sessionEntries) showsUpstreamRun(name, run string) (isFound bool) {
	w.feed.View(func(tr *transcript.Transcript) {
		isFound = slices.ContainsFunc(tr.Turns, func(t *transcript.Turn) bool {
			return t.Agent == name && t.Unfinished() && t.Upstream != nil && t.Upstream.Run == run
		})
	})
	return isFound
}

// hasMessage reports whether the conversation has a message with an id, however old it is.
func (w sessionEntries) hasMessage(ctx context.Context, id string) (bool, error) {
	if !w.isNewMessageID(id) {
		return true, nil
	}
	earlier := false
	w.feed.View(func(t *transcript.Transcript) { earlier = t.Earlier })
	if !earlier {
		return false, nil
	}
	exists, err := w.messageIDs.has(id, func() (*transcript.Transcript, error) {
		history, _, err := w.readLog(ctx)
		return history, err
	})
	if err != nil {
		return false, JournalError("look for message", err)
	}
	return exists, nil
}

// addRefused adds a run in progress that exceeds maxObserved as a failed turn, so that readers see that something is missing.
func (w sessionEntries) addRefused(t *tx, r resolved, name string) {
	r.ops = []event.Event{{Type: event.TurnEnd, Body: &event.Body{Outcome: event.Failed, Error: &event.Error{
		Code: codeRuns, Message: fmt.Sprintf("%d runs that the agent's other clients began are in progress in this conversation, which is the limit", maxObserved),
	}}}}
	w.addWhole(t, r, name)
	t.afterCommit(func() {
		w.log.Warn("run not shown: too many runs of the agent's other clients are in progress in this conversation", "turn", r.id, "agent", name, "limit", maxObserved)
	})
}
