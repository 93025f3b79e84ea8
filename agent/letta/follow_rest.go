package letta

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/leat-dev/leat/agent"
)

const (
	// pollRuns is how many of an agent's newest runs are looked at.
	pollRuns = 50
	// pollMost is the longest pause after looks that failed.
	pollMost = 30 * time.Second
	// skew is how far the server's clock may be behind itself between two tables.
	skew = 10 * time.Second
)

// poller follows the sessions of all conversations. It looks at the newest runs of each agent upstream, and reads the history of
// those conversations in which a run has begun or ended. It makes one request at a time.
type poller struct {
	r        *rest
	sessions agent.Sessions
	began    time.Time
	free     time.Time // when the next look may be
	history  bool      // a history is the next in turn, if there is one
	agents   map[string]*polled
	watches  map[string]*watched // by conversation
}

// polled is an agent upstream.
type polled struct {
	id   string
	runs map[string]runInfo // as they were last listed; nil if they were not
	due  time.Time
	wait time.Duration // after a failure
	busy time.Time     // when a run has begun or ended last
}

// errNoRuns says that the server does not list runs.
var errNoRuns = errors.New("letta: the server has no list of runs")

// Follow implements [agent.Follower].
func (r *rest) Follow(ctx context.Context, sessions agent.Sessions) error {
	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	changes, failed := make(chan agent.Session), make(chan error, 1)
	tasks.Go(func() {
		failed <- agent.EachSession(ctx, sessions, func(s agent.Session) {
			select {
			case changes <- s:
			case <-ctx.Done():
			}
		})
	})
	p := &poller{r: r, sessions: sessions, began: time.Now(), agents: map[string]*polled{}, watches: map[string]*watched{}}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Stop()
		if at := p.next(); !at.IsZero() {
			timer.Reset(time.Until(at))
		}
		select {
		case s := <-changes:
			p.take(s)
		case err := <-failed:
			return err
		case <-timer.C:
			if err := p.look(ctx); errors.Is(err, errNoRuns) {
				r.log().Info("the Letta server does not list its runs; what other clients do in its conversations is not shown")
				return nil
			}
			p.free = time.Now().Add(r.times.pace)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// take takes note of a conversation's session.
func (p *poller) take(s agent.Session) {
	key := sessionOf(s.Session)
	old := p.watches[s.Conversation]
	if old != nil && old.session == key {
		return
	}
	delete(p.watches, s.Conversation)
	if old != nil && !p.needs(old.session.Agent) {
		delete(p.agents, old.session.Agent)
	}
	if key.Conversation == "" {
		return
	}
	if p.agents[key.Agent] == nil {
		p.agents[key.Agent] = &polled{id: key.Agent, due: time.Now()}
	}
	p.watches[s.Conversation] = newWatched(p, s, key)
}

func (p *poller) needs(agent string) bool {
	for _, w := range p.watches {
		if w.session.Agent == agent {
			return true
		}
	}
	return false
}

// first returns the agent and the history that are due first; each may be nil.
func (p *poller) first() (a *polled, w *watched) {
	for _, one := range p.agents {
		if a == nil || one.due.Before(a.due) {
			a = one
		}
	}
	for _, one := range p.watches {
		if one.due.IsZero() || p.agents[one.session.Agent].runs == nil {
			continue
		}
		if w == nil || one.urgent && !w.urgent || one.urgent == w.urgent && one.due.Before(w.due) {
			w = one
		}
	}
	return a, w
}

// next returns when the next look is due. It returns the zero time without agents.
func (p *poller) next() (at time.Time) {
	a, w := p.first()
	if a != nil {
		at = a.due
	}
	if w != nil && (a == nil || w.due.Before(at)) {
		at = w.due
	}
	if !at.IsZero() && at.Before(p.free) {
		at = p.free
	}
	return at
}

// look looks at what is due. Agents and histories take turns, so that neither keeps the other waiting.
func (p *poller) look(ctx context.Context) error {
	now := time.Now()
	a, w := p.first()
	if w != nil && w.due.After(now) {
		w = nil
	}
	if a != nil && a.due.After(now) {
		a = nil
	}
	if w != nil && (p.history || a == nil) {
		p.history = false
		p.read(ctx, w)
		return nil
	}
	p.history = true
	if a == nil {
		return nil
	}
	return p.poll(ctx, a)
}

// poll looks at the newest runs of an agent.
func (p *poller) poll(ctx context.Context, a *polled) error {
	list, err := p.r.runs(ctx, url.Values{"agent_id": {a.id}})
	var f *failure
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.As(err, &f) && (f.status == http.StatusNotFound || f.status == http.StatusMethodNotAllowed):
		return errNoRuns
	case err != nil:
		if a.wait == 0 {
			p.r.log().Warn("the runs of an agent at the Letta server can't be listed; the server is asked again", "agent", a.id, "error", err)
		}
		a.wait = min(max(2*a.wait, p.r.times.poll), pollMost)
		if f != nil && f.hint > a.wait {
			a.wait = f.hint
		}
		a.due = time.Now().Add(a.wait)
		return nil
	}
	runs, overlap := map[string]runInfo{}, false
	for _, i := range list {
		if i.Agent != a.id {
			continue // a server that does not know the filter
		}
		runs[i.ID] = i
		old, listed := a.runs[i.ID]
		overlap = overlap || listed
		switch {
		case listed && old.Status == i.Status:
		case a.runs == nil && i.over(): // every history is read once
		default:
			a.busy = time.Now()
			p.changed(ctx, i, a.runs != nil && !listed)
		}
	}
	if a.runs != nil && !overlap && len(list) >= pollRuns {
		for _, w := range p.watches {
			if w.session.Agent == a.id {
				w.hurry()
			}
		}
	}
	pause := p.r.times.poll
	if time.Since(a.busy) > time.Minute {
		pause = p.r.times.calm
	}
	a.runs, a.wait, a.due = runs, 0, time.Now().Add(pause)
	return nil
}

// runs lists the newest runs.
func (r *rest) runs(ctx context.Context, query url.Values) (list []runInfo, err error) {
	query.Set("order", "desc")
	query.Set("limit", strconv.Itoa(pollRuns))
	err = r.short(ctx, &list, http.MethodGet, query, nil, "runs/")
	return list, err
}

// changed has the histories read in which a run has begun or ended. began says that it was not there at the last look.
func (p *poller) changed(ctx context.Context, i runInfo, began bool) {
	if i.Conversation == "" && i.Metadata.Type == blocking {
		if !i.over() && time.Since(i.Created) < p.r.times.held {
			p.await(ctx, i)
		}
		return
	}
	for _, w := range p.watches {
		if w.shows(i) {
			w.hurry()
			if began {
				w.begun[i.ID] = true
			}
		}
	}
}

// await has those conversations looked at whose run it may be: the server says neither that nor when the run ends.
func (p *poller) await(ctx context.Context, i runInfo) {
	var list []struct {
		ID string    `json:"id"`
		At time.Time `json:"last_message_at"`
	}
	query := url.Values{"agent_id": {i.Agent}, "order": {"desc"}, "order_by": {"last_message_at"}, "limit": {strconv.Itoa(pollRuns)}}
	err := p.r.short(ctx, &list, http.MethodGet, query, nil, "conversations/")
	for _, w := range p.watches {
		if w.session.Agent != i.Agent || w.session.Conversation == own {
			continue
		}
		may := err != nil // any may be the one
		for _, c := range list {
			may = may || c.ID == w.session.Conversation && c.At.After(i.Created.Add(-skew))
		}
		if may {
			w.awaits[i.ID] = time.Now()
			w.again(time.Now().Add(p.r.times.poll))
		}
	}
}

// read reads a conversation's history.
func (p *poller) read(ctx context.Context, w *watched) {
	w.due, w.urgent = time.Time{}, false
	err := w.catchUp(ctx, p.agents[w.session.Agent].runs)
	var f *failure
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, agent.ErrNoSession), errors.As(err, &f) && f.status == http.StatusNotFound:
		// A turn that finds the conversation gone makes another one.
		delete(p.watches, w.conversation)
		if !p.needs(w.session.Agent) {
			delete(p.agents, w.session.Agent)
		}
	case err != nil:
		if w.wait == 0 {
			p.r.log().Warn("the history of a conversation at the Letta server can't be read; it is read again", "conversation", w.conversation, "error", err)
		}
		w.wait = min(max(2*w.wait, p.r.times.poll), pollMost)
		w.again(time.Now().Add(w.wait))
	default:
		w.wait = 0
	}
}

// placed is how far a session was followed.
type placed struct {
	Session session  `json:"session"`
	Row     string   `json:"row,omitempty"`  // the last message that was taken
	Runs    []string `json:"runs,omitempty"` // the last runs that were taken, of which something may be stored late
}

// lateRuns bounds the runs of a cursor.
const lateRuns = 16

func parsePlaced(raw json.RawMessage, key session) (at placed, ok bool) {
	if json.Unmarshal(raw, &at) != nil || at.Session != key {
		return placed{Session: key}, false
	}
	return at, true
}
