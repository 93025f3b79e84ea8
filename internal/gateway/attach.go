package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
)

// UpstreamSessions are the sessions of agents' upstreams, which an operator can attach.
type UpstreamSessions struct{ g *Gateway }

// UpstreamSessions returns the sessions of all agents' upstreams.
func (g *Gateway) UpstreamSessions() UpstreamSessions { return UpstreamSessions{g} }

// List lists the sessions of an agent's upstream for an operator, newest first. A failed upstream is a *Rejection
// with ReasonUpstream, because the gateway itself works. More than maxSessions are cut off.
func (u UpstreamSessions) List(ctx context.Context, p Principal, name string) ([]agent.SessionInfo, error) {
	upstream, err := u.attacher(p, name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, upstreamLimit)
	defer cancel()
	infos, err := upstream.ListSessions(ctx, maxSessions)
	if err != nil {
		return nil, upstreamError(name, err)
	}
	if infos == nil {
		infos = []agent.SessionInfo{}
	}
	return infos[:min(len(infos), maxSessions)], nil
}

// attacher returns the agent of that name for an operator, if it can attach sessions. It checks the access first, so
// that only admins learn which agents there are.
func (u UpstreamSessions) attacher(p Principal, name string) (agent.Attacher, error) {
	if err := Decide(p, ActionAdmin, nil); err != nil {
		return nil, err
	}
	a, ok := u.g.agent(name, behalf(p))
	if !ok {
		return nil, reject(ReasonUnknown, "no agent is named %q", name)
	}
	upstream, ok := a.Agent.(agent.Attacher)
	if !ok {
		return nil, reject(ReasonInvalid, "the agent %q can't attach sessions of its upstream", name)
	}
	return upstream, nil
}

// upstreamError returns the refusal for an error of an agent's upstream. The text of the upstream's error goes to the
// operator, as one line.
func upstreamError(name string, err error) error {
	if errors.Is(err, agent.ErrUnknownSession) {
		return reject(ReasonUnknown, "the upstream of the agent %q has no such session", name)
	}
	return reject(ReasonUpstream, "the agent %q: %s", name, agent.OneLine(err))
}

// AttachOptions select the session that a new conversation continues, and the owner of the conversation.
type AttachOptions struct {
	Agent   string
	Session string // as [agent.SessionInfo] has it
	// Tenant and Owner are the owner of the conversation. If both are empty, it is the operator.
	Tenant, Owner string
	Title         string // if it is empty, the session's
	// History imports the messages of the session so far.
	History bool
}

// Attach creates a conversation that continues an upstream session, for an operator, completely or not at all. If it is
// refused, the error is a *Rejection: ReasonUnknown if the agent or the session doesn't exist, ReasonConflict if another
// conversation continues the session, ReasonTooLarge or ReasonQuota if its history is too large.
func (u UpstreamSessions) Attach(ctx context.Context, p Principal, opt AttachOptions) (s journal.Summary, err error) {
	g := u.g
	upstream, err := u.attacher(p, opt.Agent)
	if err != nil {
		return s, err
	}
	if g.Draining() {
		return s, reject(ReasonDraining, "the gateway is stopping; try again in a moment")
	}
	if opt.Session == "" {
		return s, reject(ReasonInvalid, "a session is required")
	}
	for name, v := range map[string]string{"session": opt.Session, "tenant": opt.Tenant, "owner": opt.Owner} {
		if err := event.CheckID(name, v); err != nil {
			return s, reject(ReasonInvalid, "%v", err)
		}
	}
	if err := checkMeta(&opt.Title, nil); err != nil {
		return s, err
	}
	leave, err := g.creating.Lock(ctx, "attach/"+opt.Agent) // so that two attempts don't attach the same session
	if err != nil {
		return s, err
	}
	defer leave()
	upstreamCtx, cancel := context.WithTimeout(ctx, upstreamLimit)
	defer cancel()
	got, err := upstream.Attach(upstreamCtx, opt.Session, opt.History)
	if err != nil {
		return s, upstreamError(opt.Agent, err)
	}
	// The session is what the agent needs to find the session again, in a form of its own; the gateway only stores it.
	if len(got.Session) == 0 || len(got.Session) > agent.MaxSession || !json.Valid(got.Session) {
		return s, reject(ReasonUpstream, "the agent %q returned an invalid session", opt.Agent)
	}
	if err := checkUnattached(ctx, g.journal, opt.Agent, got.Session); err != nil {
		return s, err
	}
	// The messages are charged to the owner, not to the operator. Files are stored before the commit, because that can take long,
	// and removed again if nothing is committed. After ErrUnknown they stay, since the commit may have been stored.
	owner := quota.Account{Tenant: opt.Tenant, Subject: opt.Owner}
	n := &attachment{g: g, opt: opt, id: newID(), keys: map[string]string{}}
	n.files = g.attachments.OfHistory(n.id, owner)
	defer func() {
		if err != nil && !errors.Is(err, journal.ErrUnknown) {
			n.undo()
		}
	}()
	b, err := n.batch(ctx, Actor(ctx, p), &got)
	if err != nil {
		return s, err
	}
	grant, err := g.quota.Take(owner, quota.Need{Bytes: n.size + n.files.Size(), Owner: owner})
	if err != nil {
		return s, g.limits.rejection(err)
	}
	if err := g.journal.Append(ctx, b); err != nil {
		grant.Cancel()
		return s, creationError(err)
	}
	grant.Commit()
	// Only after the commit: until then a crash must leave nothing behind, and the next start removes files that no conversation
	// has.
	n.files.Committed()
	g.audit.Wake()
	g.compactor.add(n.id, int64(len(b.Events)))
	g.sessions.sessionChanged(opt.Agent, n.id)
	notifyCreated(g.cfg.Watchers, b.Summary)
	return *b.Summary, nil
}

// checkUnattached refuses a session that another conversation continues already, because both would show and answer
// all of it. It reads the keys of all sessions, which is acceptable for a command that operators use seldom.
func checkUnattached(ctx context.Context, j Journal, name string, session json.RawMessage) error {
	want := compact(session)
	for kv, err := range journal.EachKey(ctx, j.KeysAfter, journalkey.SessionPrefix, "", sessionsPage) {
		if err != nil {
			return JournalError("attach", err)
		}
		if conversation, of, ok := journalkey.CutSession(kv.Key); ok && of == name && bytes.Equal(compact(kv.Value), want) {
			return reject(ReasonConflict, "the conversation %s continues this session already", conversation)
		}
	}
	return nil
}

// compact returns JSON without spaces, so that equal sessions are equal bytes.
func compact(v json.RawMessage) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, v); err != nil {
		return v
	}
	return b.Bytes()
}

// attachment is a conversation that is being created from a session.
type attachment struct {
	g         *Gateway
	opt       AttachOptions
	id        string
	keyValues []journal.KeyValue
	keys      map[string]string // of entries: what each became
	files     HistoryFiles
	size      int64 // of the events, in bytes
}

func (n *attachment) setKey(key string, value []byte) {
	n.keyValues = append(n.keyValues, journal.KeyValue{Key: key, Value: value})
}

// batch returns the one commit that creates the conversation. It contains everything: events, keys of entries and
// turns, the session, the cursor, the files and the audit entry.
func (n *attachment) batch(ctx context.Context, operator audit.Actor, got *agent.Attachment) (b journal.Batch, err error) {
	if err := errors.Join(checkEntries(got.Entries), checkCursor(got.Cursor)); err != nil {
		return b, reject(ReasonUpstream, "the agent %q returned an invalid history: %v", n.opt.Agent, err)
	}
	history, err := n.events(ctx, got.Entries)
	if err != nil {
		return b, err
	}
	title := cmp.Or(n.opt.Title, strings.ToValidUTF8(got.Title[:min(len(got.Title), maxTitle)], ""))
	if title == "" && n.g.cfg.Titles {
		title = firstTitle(history)
	}
	if title != "" {
		history = append([]event.Event{{At: nowMillis(), Type: event.ConversationUpdate, Body: &event.Body{Title: &title}}}, history...)
	}
	events, turns, err := renumber(history)
	if err != nil {
		return b, err
	}
	for _, turn := range turns {
		n.setKey(journalkey.Turn(turn), []byte(n.id))
	}
	n.setKey(journalkey.Session(n.id, n.opt.Agent), bytes.Clone(got.Session))
	if got.Cursor != nil {
		n.setKey(journalkey.Cursor(n.id, n.opt.Agent), bytes.Clone(got.Cursor))
	}
	note, err := n.g.audit.Note(audit.Entry{Action: "attach", Actor: operator, Conversation: n.id, Tenant: n.opt.Tenant, Subject: n.opt.Owner})
	if err != nil {
		return b, err
	}
	at := nowMillis()
	return journal.Batch{Conversation: n.id, Create: true, Events: events, Keys: append(slices.Concat(n.keyValues, n.files.Keys()), note), Summary: &journal.Summary{
		ID: n.id, Tenant: n.opt.Tenant, Owner: n.opt.Owner, Title: title, Agent: n.opt.Agent, Created: at, Updated: at, Head: int64(len(events)),
	}}, nil
}

// events returns the events of a session's history. A history that is invalid is refused as a whole, because a part
// of a session would look like all of it.
func (n *attachment) events(ctx context.Context, entries []agent.Entry) (history []event.Event, err error) {
	x := outsides{maxMessage: n.g.settings().MaxMessage, files: n.files}
	for i := range entries {
		e := &entries[i]
		// An upstream may list an entry twice, for example a row that was copied at a retry.
		if n.keys[e.Key] != "" {
			continue
		}
		// A run in progress can't be part of a single commit. The agent reports it through Follow instead.
		if e.Run != nil && e.Run.Ops == nil {
			return nil, reject(ReasonUpstream, "the agent %q returned a history with a run that is not over", n.opt.Agent)
		}
		prepared, err := x.prepare(ctx, e)
		if errors.Is(err, event.ErrInvalid) {
			return nil, reject(ReasonUpstream, "the agent %q returned an invalid history: %v", n.opt.Agent, err)
		}
		if err != nil {
			return nil, err
		}
		entryEvents := prepared.events
		if e.Run != nil {
			answers, _ := strings.CutPrefix(n.keyed(e.Run.Answers, becameMessage), becameMessage)
			parent, _ := strings.CutPrefix(n.keyed(e.Run.Parent, becameTurn), becameTurn)
			entryEvents, _ = prepared.completeTurn(n.opt.Agent, answers, parent)
		}
		for i := range entryEvents {
			b, err := entryEvents[i].AppendJSON(nil)
			if err != nil {
				return nil, fmt.Errorf("gateway: attach: %w", err)
			}
			n.size += int64(len(b))
		}
		if n.size > maxAttached {
			return nil, reject(ReasonTooLarge, "the history of the session has more than %d MiB; attach it without its history", maxAttached>>20)
		}
		n.keys[e.Key] = prepared.became()
		n.setKey(journalkey.Entry(n.id, n.opt.Agent, e.Key), []byte(prepared.became()))
		history = append(history, entryEvents...)
	}
	return history, nil
}

// keyed returns what an entry became, if that is of the kind.
func (n *attachment) keyed(key, kind string) string {
	if v := n.keys[key]; strings.HasPrefix(v, kind) {
		return v
	}
	return ""
}

// undo removes the files of a conversation that was not created.
func (n *attachment) undo() {
	if err := n.files.Discard(); err != nil {
		n.g.log.Warn("files of a conversation that was not created could not be removed; the next start removes them", "conversation", n.id, "error", err)
	}
}

const (
	// ReasonUpstream is the reason if an agent's upstream fails or refuses a request.
	ReasonUpstream = "upstream"

	// maxSessions limits how many sessions of an upstream are listed.
	maxSessions = 500
	// maxAttached limits the history of a session, in bytes of events. Imports have the same limit.
	maxAttached = 128 << 20
	// upstreamLimit is how long an upstream may take to list its sessions or to return one. The page waits longer.
	upstreamLimit = 25 * time.Second
)
