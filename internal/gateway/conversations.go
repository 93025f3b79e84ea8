// Creating conversations, and looking up one conversation or one turn for a principal. A conversation that the principal may not
// read is reported as not found.

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// CreateOptions describe a new conversation. All fields may be empty.
type CreateOptions struct {
	ID       string // chosen by the client, see [ConversationID]
	Title    string
	Agent    string
	Metadata map[string]json.RawMessage
	// Messages are messages from elsewhere with which the conversation begins. They start no turn.
	Messages []CommandMessage
	// Unlisted omits the conversation from [Gateway.List], so that only clients that know its id find it.
	Unlisted bool
	// Key is the idempotency key, among those of the same principal.
	Key string
}

// Create creates a conversation that belongs to the principal. If an earlier call had the same key, it returns that
// conversation and created is false. Refusals are a *Rejection, and ErrExists if the id is taken. The call is
// complete or has no effect; only after journal.ErrUnknown it may have had one, which a repetition with the key finds
// out.
func (g *Gateway) Create(ctx context.Context, p Principal, c CreateOptions) (s journal.Summary, created bool, err error) {
	if err := Decide(p, ActionCreate, nil); err != nil {
		return s, false, err
	}
	if g.Draining() {
		return s, false, reject(ReasonDraining, "the gateway is stopping; try again in a moment")
	}
	if c.Agent != "" {
		if _, ok := g.agent(c.Agent, behalf(p)); !ok {
			return s, false, reject(ReasonUnknownAgent, "no agent is named %q", c.Agent)
		}
	}
	if err := checkMeta(&c.Title, c.Metadata); err != nil {
		return s, false, err
	}
	id, err := ConversationID(p.Tenant, c.ID)
	if err != nil {
		return s, false, err
	}
	if err := event.CheckID("key", c.Key); err != nil {
		return s, false, reject(ReasonInvalid, "%v", err)
	}
	seeds, err := initialMessages(c.Messages, g.settings().MaxMessage)
	if err != nil {
		return s, false, err
	}
	key, hash := "", ""
	// The key is looked up before anything is written, and stored in the same commit as the conversation, so a repetition can't
	// create a second one.
	if c.Key != "" {
		key = journalkey.Create(p.Tenant, p.Subject, c.Key)
		hash = Command{Type: "create", Agent: c.Agent, After: c.ID, Title: &c.Title, Metadata: c.Metadata, Text: digest(c.Messages)}.hash()
		leave, err := g.creating.Lock(ctx, key) // a repetition must wait while the first call still runs
		if err != nil {
			return s, false, err
		}
		defer leave()
		if s, ok, err := createdBefore(ctx, g.journal, key, hash); ok || err != nil {
			return s, false, err
		}
	}
	if c.Title == "" && g.cfg.Titles {
		c.Title = firstTitle(seeds)
	}
	at := nowMillis()
	s = journal.Summary{
		ID: id, Tenant: p.Tenant, Owner: p.Subject, Title: c.Title, Agent: c.Agent, Metadata: c.Metadata, Unlisted: c.Unlisted, Created: at, Updated: at,
	}
	// There is no writer for the conversation yet, so this is the only commit that doesn't come from one. Create makes it fail if
	// the id exists.
	b := journal.Batch{Conversation: id, Create: true, Summary: &s}
	if c.Title != "" || len(c.Metadata) > 0 {
		body := &event.Body{Metadata: c.Metadata}
		if c.Title != "" {
			body.Title = &c.Title
		}
		b.Events = []event.Event{{Seq: 1, At: at, Type: event.ConversationUpdate, Body: body}}
	}
	b.Events = append(b.Events, numbered(seeds, int64(len(b.Events)), at)...)
	if key != "" {
		v, err := json.Marshal(storedOutcome{Hash: hash, Ack: Ack{Message: id}})
		if err != nil {
			return s, false, err
		}
		b.Keys = []journal.KeyValue{{Key: key, Value: v, Expires: at + g.cfg.KeyLife.Milliseconds()}}
	}
	// The audit entry is part of the commit: a conversation without one, or the reverse, is impossible.
	note, err := g.audit.Note(audit.Entry{Action: "create", Actor: Actor(ctx, p), Conversation: id})
	if err != nil {
		return s, false, err
	}
	b.Keys = append(b.Keys, note)
	grant, err := g.quota.Take(p.Account(), quota.Need{Bytes: g.limits.metaSize(&c.Title, c.Metadata) + g.limits.sizeOf(seeds...), Owner: quota.Account{Tenant: p.Tenant, Subject: p.Subject}})
	if err != nil {
		return s, false, g.limits.rejection(err)
	}
	defer grant.Commit()
	if err := g.journal.Append(ctx, b); err != nil {
		if errors.Is(err, journal.ErrDeleted) {
			return s, false, ErrExists // ids of deleted conversations are not used again
		}
		return s, false, JournalError("create conversation", err)
	}
	g.audit.Wake()
	// The journal adds fields to the summary, such as its epoch.
	if s, err = g.journal.Conversation(ctx, id); err == nil {
		notifyCreated(g.cfg.Watchers, &s)
	}
	return s, true, err
}

// createdBefore returns the conversation that an earlier command with the same key created; ok is false if there is
// none. A key that was used with another body is refused, because one of the two calls must be a mistake.
func createdBefore(ctx context.Context, j Journal, key, hash string) (s journal.Summary, ok bool, err error) {
	v, err := j.Get(ctx, key)
	if errors.Is(err, journal.ErrNotFound) {
		return s, false, nil
	}
	if err != nil {
		return s, false, JournalError("look up key", err)
	}
	var d storedOutcome
	if err := json.Unmarshal(v, &d); err != nil {
		return s, false, fmt.Errorf("stored key: %w", err)
	}
	if d.Hash != hash {
		return s, false, reject(ReasonConflict, "the key was used with another body")
	}
	if s, err = j.Conversation(ctx, d.Ack.Message); err != nil {
		return s, true, JournalError("look up conversation", err)
	}
	return s, true, nil
}

// Conversation returns one summary, if the principal may do action with it.
func (g *Gateway) Conversation(ctx context.Context, p Principal, action Action, id string) (journal.Summary, error) {
	return summaryFor(ctx, g.journal, p, action, id)
}

// Turn returns a turn and the id of its conversation, if the principal may do the action with the turn. A turn that is older
// than the feed's memory is read from the log. The result is a copy. A turn that a truncate has removed is not found.
func (g *Gateway) Turn(ctx context.Context, p Principal, action Action, id string) (conversation string, t transcript.Turn, err error) {
	v, err := g.journal.Get(ctx, journalkey.Turn(id))
	if err != nil {
		return "", t, JournalError("look up turn", err)
	}
	conversation = string(v)
	s, err := readSummary(ctx, g.journal, conversation)
	if err != nil {
		return "", t, err
	}
	if err := DecideTurn(p, action, id, &s); err != nil {
		return "", t, err
	}
	f, err := g.feeds.Acquire(ctx, conversation)
	if err != nil {
		return "", t, JournalError("look up turn", err)
	}
	defer f.Release()
	isFound := false
	f.View(func(tr *transcript.Transcript) {
		if turn := tr.Turn(id); turn != nil {
			isFound, t = true, *turn
			t.Requests = slices.Clone(turn.Requests) // the fold changes its own in place
		}
	})
	if isFound {
		return conversation, t, nil
	}
	// The turn is older than the feed's memory.
	// Folding the whole log is slow, but this is rare: clients ask for turns that they have just seen.
	r, err := g.journal.Read(ctx, conversation, 0, 0)
	if err != nil {
		return "", t, JournalError("look up turn", err)
	}
	var history transcript.Transcript
	for i := range r.Events {
		if err := history.Apply(&r.Events[i]); err != nil {
			return "", t, fmt.Errorf("gateway: fold: %w", err)
		}
	}
	if turn := history.Turn(id); turn != nil {
		return conversation, *turn, nil
	}
	return "", t, ErrNotFound // removed by a truncate
}
