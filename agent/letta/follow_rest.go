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
	// maxPollPause is the longest pause after looks that failed.
	maxPollPause = 30 * time.Second
	// clockSkew is how far the server's clock may be behind itself between two tables.
	clockSkew = 10 * time.Second
)

// poller follows the sessions of all conversations. It looks at the newest runs of each agent upstream, and reads the history of
// those conversations in which a run has begun or ended. It makes one request at a time.
type poller struct {
	agent       *restAgent
	sessions    agent.Sessions
	startTime   time.Time
	nextRequest time.Time // when the next look may be
	historyNext bool      // a history is the next in turn, if there is one
	agents      map[string]*polledAgent
	watches     map[string]*restWatch // by conversation
}

// polledAgent is an agent upstream.
type polledAgent struct {
	id         string
	runs       map[string]runInfo // as they were last listed; nil if they were not
	due        time.Time
	retryDelay time.Duration // after a failure
	lastChange time.Time     // when a run has begun or ended last
}

// errNoRuns says that the server does not list runs.
var errNoRuns = errors.New("letta: the server has no list of runs")

// Follow implements [agent.Follower].
func (r *restAgent) Follow(ctx context.Context, sessions agent.Sessions) error {
	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	changes, listEnded := make(chan agent.Session), make(chan error, 1)
	tasks.Go(func() {
		listEnded <- agent.EachSession(ctx, sessions, func(s agent.Session) {
			select {
			case changes <- s:
			case <-ctx.Done():
			}
		})
	})
	p := &poller{agent: r, sessions: sessions, startTime: time.Now(), agents: map[string]*polledAgent{}, watches: map[string]*restWatch{}}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Stop()
		if at := p.nextTime(); !at.IsZero() {
			timer.Reset(time.Until(at))
		}
		select {
		case s := <-changes:
			p.setSession(s)
		case err := <-listEnded:
			return err
		case <-timer.C:
			if err := p.pollNext(ctx); errors.Is(err, errNoRuns) {
				r.log().Info("the Letta server does not list its runs; what other clients do in its conversations is not shown")
				return nil
			}
			p.nextRequest = time.Now().Add(r.times.pollGap)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// setSession takes note of a conversation's session.
func (p *poller) setSession(s agent.Session) {
	key := sessionOf(s.Session)
	previous := p.watches[s.Conversation]
	if previous != nil && previous.session == key {
		return
	}
	delete(p.watches, s.Conversation)
	if previous != nil && !p.hasWatch(previous.session.Agent) {
		delete(p.agents, previous.session.Agent)
	}
	if key.Conversation == "" {
		return
	}
	if p.agents[key.Agent] == nil {
		p.agents[key.Agent] = &polledAgent{id: key.Agent, due: time.Now()}
	}
	p.watches[s.Conversation] = newRESTWatch(p, s, key)
}

func (p *poller) hasWatch(agent string) bool {
	for _, w := range p.watches {
		if w.session.Agent == agent {
			return true
		}
	}
	return false
}

// nextDue returns the agent and the history that are due first; each may be nil.
func (p *poller) nextDue() (a *polledAgent, w *restWatch) {
	for _, candidate := range p.agents {
		if a == nil || candidate.due.Before(a.due) {
			a = candidate
		}
	}
	for _, candidate := range p.watches {
		if candidate.due.IsZero() || p.agents[candidate.session.Agent].runs == nil {
			continue
		}
		if w == nil || candidate.isUrgent && !w.isUrgent || candidate.isUrgent == w.isUrgent && candidate.due.Before(w.due) {
			w = candidate
		}
	}
	return a, w
}

// nextTime returns when the next look is due. It returns the zero time without agents.
func (p *poller) nextTime() (at time.Time) {
	a, w := p.nextDue()
	if a != nil {
		at = a.due
	}
	if w != nil && (a == nil || w.due.Before(at)) {
		at = w.due
	}
	if !at.IsZero() && at.Before(p.nextRequest) {
		at = p.nextRequest
	}
	return at
}

// pollNext looks at what is due. Agents and histories take turns, so that neither keeps the other waiting.
func (p *poller) pollNext(ctx context.Context) error {
	at := time.Now()
	a, w := p.nextDue()
	if w != nil && w.due.After(at) {
		w = nil
	}
	if a != nil && a.due.After(at) {
		a = nil
	}
	if w != nil && (p.historyNext || a == nil) {
		p.historyNext = false
		p.readHistory(ctx, w)
		return nil
	}
	p.historyNext = true
	if a == nil {
		return nil
	}
	return p.listRuns(ctx, a)
}

// listRuns looks at the newest runs of an agent.
func (p *poller) listRuns(ctx context.Context, a *polledAgent) error {
	list, err := p.agent.listRuns(ctx, url.Values{"agent_id": {a.id}})
	var f *failure
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.As(err, &f) && (f.status == http.StatusNotFound || f.status == http.StatusMethodNotAllowed):
		return errNoRuns
	case err != nil:
		if a.retryDelay == 0 {
			p.agent.log().Warn("the runs of an agent at the Letta server can't be listed; the server is asked again", "agent", a.id, "error", err)
		}
		a.retryDelay = min(max(2*a.retryDelay, p.agent.times.poll), maxPollPause)
		if f != nil && f.retryAfter > a.retryDelay {
			a.retryDelay = f.retryAfter
		}
		a.due = time.Now().Add(a.retryDelay)
		return nil
	}
	runs, overlap := map[string]runInfo{}, false
	for _, i := range list {
		if i.Agent != a.id {
			continue // a server that does not know the filter
		}
		runs[i.ID] = i
		old, isListed := a.runs[i.ID]
		overlap = overlap || isListed
		switch {
		case isListed && old.Status == i.Status:
		case a.runs == nil && i.isOver(): // every history is read once
		default:
			a.lastChange = time.Now()
			p.runChanged(ctx, i, a.runs != nil && !isListed)
		}
	}
	if a.runs != nil && !overlap && len(list) >= pollRuns {
		for _, w := range p.watches {
			if w.session.Agent == a.id {
				w.readNow()
			}
		}
	}
	pause := p.agent.times.poll
	if time.Since(a.lastChange) > time.Minute {
		pause = p.agent.times.idlePoll
	}
	a.runs, a.retryDelay, a.due = runs, 0, time.Now().Add(pause)
	return nil
}

// listRuns lists the newest runs.
func (r *restAgent) listRuns(ctx context.Context, query url.Values) (list []runInfo, err error) {
	query.Set("order", "desc")
	query.Set("limit", strconv.Itoa(pollRuns))
	err = r.callJSON(ctx, &list, http.MethodGet, query, nil, "runs/")
	return list, err
}

// runChanged has the histories read in which a run has begun or ended. began says that it was not there at the last look.
func (p *poller) runChanged(ctx context.Context, i runInfo, isNew bool) {
	if i.Conversation == "" && i.Metadata.Type == blockingType {
		if !i.isOver() && time.Since(i.Created) < p.agent.times.queueLimit {
			p.awaitBlocking(ctx, i)
		}
		return
	}
	for _, w := range p.watches {
		if w.hasRun(i) {
			w.readNow()
			if isNew {
				w.newRuns[i.ID] = true
			}
		}
	}
}

// awaitBlocking has those conversations looked at whose run it may be: the server says neither that nor when the run ends.
func (p *poller) awaitBlocking(ctx context.Context, i runInfo) {
	var list []struct {
		ID string    `json:"id"`
		At time.Time `json:"last_message_at"`
	}
	query := url.Values{"agent_id": {i.Agent}, "order": {"desc"}, "order_by": {"last_message_at"}, "limit": {strconv.Itoa(pollRuns)}}
	err := p.agent.callJSON(ctx, &list, http.MethodGet, query, nil, "conversations/")
	for _, w := range p.watches {
		if w.session.Agent != i.Agent || w.session.Conversation == ownConversation {
			continue
		}
		isCandidate := err != nil // any may be the one
		for _, c := range list {
			isCandidate = isCandidate || c.ID == w.session.Conversation && c.At.After(i.Created.Add(-clockSkew))
		}
		if isCandidate {
			w.blockingRuns[i.ID] = time.Now()
			w.readBy(time.Now().Add(p.agent.times.poll))
		}
	}
}

// readHistory reads a conversation's history.
func (p *poller) readHistory(ctx context.Context, w *restWatch) {
	w.due, w.isUrgent = time.Time{}, false
	err := w.readHistory(ctx, p.agents[w.session.Agent].runs)
	var f *failure
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, agent.ErrNoSession), errors.As(err, &f) && f.status == http.StatusNotFound:
		// A turn that finds the conversation gone makes another one.
		delete(p.watches, w.conversation)
		if !p.hasWatch(w.session.Agent) {
			delete(p.agents, w.session.Agent)
		}
	case err != nil:
		if w.retryDelay == 0 {
			p.agent.log().Warn("the history of a conversation at the Letta server can't be read; it is read again", "conversation", w.conversation, "error", err)
		}
		w.retryDelay = min(max(2*w.retryDelay, p.agent.times.poll), maxPollPause)
		w.readBy(time.Now().Add(w.retryDelay))
	default:
		w.retryDelay = 0
	}
}

// restCursor is how far a session was followed.
type restCursor struct {
	Session session  `json:"session"`
	Row     string   `json:"row,omitempty"`  // the last message that was taken
	Runs    []string `json:"runs,omitempty"` // the last runs that were taken, of which something may be stored late
}

// maxCursorRuns bounds the runs of a cursor.
const maxCursorRuns = 16

func parseRESTCursor(raw json.RawMessage, key session) (at restCursor, ok bool) {
	if json.Unmarshal(raw, &at) != nil || at.Session != key {
		return restCursor{Session: key}, false
	}
	return at, true
}
