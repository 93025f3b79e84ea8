package agenttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

// RunFunc emits the output of a live run of the upstream. Its parameters are those of [agent.Follower.Observe].
type RunFunc func(ctx context.Context, in agent.Input, state json.RawMessage, emitter *agent.Emitter) error

// Follower is an [agent.Attacher] with a fake upstream: a test adds entries to its sessions with
// [Follower.AddEntries]. In its first turn, each conversation stores a session with the conversation's id. The
// zero value is ready to use.
//
// Its methods may be called from any goroutine. If a test restarts its gateway with the same Follower, the
// upstream keeps its sessions, as a real one does. The cursor of a session is the number of its entries that
// were added to the conversation.
type Follower struct {
	// Turn answers the turns that the gateway starts, after the session is stored. If it is nil, the answer is the text of the message.
	Turn func(ctx context.Context, in agent.Input, emitter *agent.Emitter) error
	// OnAnswer, if not nil, is called with each answer to a request of a turn.
	OnAnswer func(in agent.Input, decision event.Decision)

	mu       sync.Mutex
	sessions map[string][]agent.Entry
	runs     map[string]RunFunc // by key
	happened chan struct{}      // closed and replaced after each change
	fault    error
	replay   bool // the next Follow adds all entries from the first one on
	follows  int
}

var _ agent.Attacher = (*Follower)(nil)

// AddEntries adds entries to a session of the upstream, and creates the session if necessary.
func (f *Follower) AddEntries(session string, entries ...agent.Entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sessions == nil {
		f.sessions = map[string][]agent.Entry{}
	}
	f.sessions[session] = append(f.sessions[session], entries...)
	f.wake()
}

// SetRun sets the output of the live run with the given entry key. Call it before AddEntries.
func (f *Follower) SetRun(key string, run RunFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.runs == nil {
		f.runs = map[string]RunFunc{}
	}
	f.runs[key] = run
}

// FailFollow makes Follow return err. When it is called again, Follow adds all entries from the first one on, so that a test sees
// whether the gateway skips those that it has.
func (f *Follower) FailFollow(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault, f.replay = err, true
	f.wake()
}

// FollowCalls returns how often Follow was called.
func (f *Follower) FollowCalls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.follows
}

// wake notifies a running Follow. The caller holds f.mu.
func (f *Follower) wake() {
	if f.happened != nil {
		close(f.happened)
	}
	f.happened = make(chan struct{})
}

// Run implements [agent.Agent]. A conversation without a session gets one with its own id, so that a test knows
// the name of the session.
func (f *Follower) Run(ctx context.Context, in agent.Input, emitter *agent.Emitter) error {
	if in.Session == nil {
		if err := emitter.KeepSession(ctx, quoted(in.Conversation)); err != nil {
			return err
		}
	}
	if f.Turn != nil {
		return f.Turn(ctx, in, emitter)
	}
	return emitter.Text(in.Message.Text)
}

// Answer implements [agent.Answerer].
func (f *Follower) Answer(_ context.Context, in agent.Input, a event.Answer) error {
	if f.OnAnswer != nil {
		f.OnAnswer(in, a.Decision)
	}
	return nil
}

// Observe implements [agent.Follower]. It plays the run that the test has set for the key of the entry.
func (f *Follower) Observe(ctx context.Context, in agent.Input, state json.RawMessage, emitter *agent.Emitter) error {
	f.mu.Lock()
	run := f.runs[in.Key]
	f.mu.Unlock()
	if run == nil {
		return fmt.Errorf("agenttest: no run %q", in.Key)
	}
	return run(ctx, in, state, emitter)
}

// Follow implements [agent.Follower]. It adds the entries of all sessions and then waits for a change: of the
// conversations' sessions, or of the upstream.
//
// A goroutine passes the results of Next to the loop, because Next blocks. It ends when ctx is done, and Follow
// waits for it, so no goroutine is left when a test's gateway has stopped. After FailFollow the cursors are
// ignored once, for the sessions that exist at that time.
func (f *Follower) Follow(ctx context.Context, sessions agent.Sessions) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.mu.Lock()
	f.follows++
	fromStart := f.replay
	f.replay = false
	if f.happened == nil {
		f.wake()
	}
	f.mu.Unlock()
	initial, err := sessions.List(ctx)
	if err != nil {
		return err
	}
	next, failed := make(chan agent.Session), make(chan error, 1)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() {
		for {
			s, err := sessions.Next(ctx)
			if err != nil {
				failed <- err
				return
			}
			select {
			case next <- s:
			case <-ctx.Done():
			}
		}
	})
	places := map[string]*place{}
	take := func(s agent.Session, fromStart bool) {
		delete(places, s.Conversation)
		if s.Session == nil {
			return
		}
		p := &place{session: decoded[string](s.Session)}
		if !fromStart {
			p.at = decoded[int](s.Cursor)
		}
		places[s.Conversation] = p
	}
	for _, s := range initial {
		take(s, fromStart)
	}
	for {
		f.mu.Lock()
		happened, fault := f.happened, f.fault
		f.fault = nil
		f.mu.Unlock()
		if fault != nil {
			return fault
		}
		for conversation, p := range places {
			err := f.catchUp(ctx, sessions, conversation, p)
			if errors.Is(err, agent.ErrNoSession) {
				delete(places, conversation)
			} else if err != nil {
				return err
			}
		}
		select {
		case s := <-next:
			take(s, false)
		case err := <-failed:
			return err
		case <-happened:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// place is the position in a session up to which its entries were added to the conversation.
type place struct {
	session string
	at      int // number of entries that were added
}

// catchUp adds the entries after the place to the conversation. It returns [agent.ErrNoSession] if the
// conversation no longer has the session; the caller then forgets the place.
func (f *Follower) catchUp(ctx context.Context, sessions agent.Sessions, conversation string, p *place) error {
	f.mu.Lock()
	rows := slices.Clone(f.sessions[p.session])
	f.mu.Unlock()
	if p.at >= len(rows) {
		return nil
	}
	if err := sessions.Add(ctx, conversation, rows[p.at:], json.RawMessage(fmt.Sprint(len(rows)))); err != nil {
		return err
	}
	p.at = len(rows)
	return nil
}

// ListSessions implements [agent.Attacher]. The time of a session is that of its last entry.
func (f *Follower) ListSessions(_ context.Context, limit int) ([]agent.SessionInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	infos := []agent.SessionInfo{}
	for id, rows := range f.sessions {
		info := agent.SessionInfo{ID: id, Title: "Session " + id}
		if len(rows) > 0 {
			info.Updated = rows[len(rows)-1].At
		}
		infos = append(infos, info)
	}
	slices.SortFunc(infos, func(a, b agent.SessionInfo) int { return b.Updated.Compare(a.Updated) })
	return infos[:min(limit, len(infos))], nil
}

// Attach implements [agent.Attacher]. The cursor is after all entries so far, also without the history, so
// Follow adds only later entries.
func (f *Follower) Attach(_ context.Context, session string, history bool) (agent.Attachment, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	rows, ok := f.sessions[session]
	if !ok {
		return agent.Attachment{}, agent.ErrUnknownSession
	}
	at := agent.Attachment{Session: quoted(session), Title: "Session " + session, Cursor: json.RawMessage(fmt.Sprint(len(rows)))}
	if history {
		at.Entries = slices.Clone(rows)
	}
	return at, nil
}

// MessageEntry returns an entry with a user's message from another client, the source.
func MessageEntry(key, source, text string, at time.Time) agent.Entry {
	return agent.Entry{Key: key, At: at, Source: source, Message: &agent.Message{Role: event.User, Text: text}}
}

// quoted returns a string as JSON, the form in which the gateway stores a session.
func quoted(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		return nil // can't happen: every string can be marshaled
	}
	return b
}

// decoded returns the value of a JSON text that the Follower has encoded before, or the zero value of T.
func decoded[T any](b json.RawMessage) (v T) {
	_ = json.Unmarshal(b, &v) // fails only for a missing text, which leaves v zero
	return v
}
