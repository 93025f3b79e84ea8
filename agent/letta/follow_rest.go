// Following sessions over the REST API, which sends no events: the runs of each agent are polled, and a history is read when one of
// them starts or ends.

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
	// pollRuns is how many of an agent's newest runs are listed.
	pollRuns = 50
	// maxPollPause is the longest pause after requests that failed.
	maxPollPause = 30 * time.Second
	// clockSkew allows for times that the server takes from different clocks for a run and for its conversation.
	clockSkew = 10 * time.Second
)

// poller follows the sessions of all conversations of an agent in Leat's settings. It lists the newest runs of each agent upstream, and
// reads the histories of the conversations in which a run has started or ended. It sends one request at a time, at least pollGap
// apart, so that following many conversations doesn't load the server. Only the goroutine of Follow uses it.
type poller struct {
	agent       *restAgent
	sessions    agent.Sessions
	startTime   time.Time
	nextRequest time.Time // earliest time of the next request
	historyNext bool      // if a list and a history are due, the history is first
	agents      map[string]*polledAgent
	watches     map[string]*restWatch // by conversation
}

// polledAgent is an agent upstream whose runs are listed.
type polledAgent struct {
	id         string
	runs       map[string]runInfo // the last list; nil before the first one
	due        time.Time          // when they are listed next
	retryDelay time.Duration      // pause after the last failure; 0 after a success
	lastChange time.Time          // when a run last started or ended
}

// errNoRuns says that the server doesn't support listing runs.
var errNoRuns = errors.New("letta: the server has no list of runs")

// Follow implements [agent.Follower]. It runs the poller until ctx ends. If the server can't list runs it returns nil at once:
// following is optional.
func (r *restAgent) Follow(ctx context.Context, sessions agent.Sessions) error {
	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	// The channel of changes has no buffer: the poller's goroutine alone changes its maps, and a session that ends must not be
	// polled after EachSession has reported it.
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
	// One timer serves all agents and histories. It is set again after each step, because each of them can change what is due next.
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
				r.log().Info("the Letta server can't list its runs, so messages of other clients are not shown")
				return nil
			}
			p.nextRequest = time.Now().Add(r.times.pollGap)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// setSession starts to follow a conversation's session, or stops it if the conversation has none any more.
func (p *poller) setSession(s agent.Session) {
	key := sessionOf(s.Session)
	previous := p.watches[s.Conversation]
	// A session that is stored again without a change keeps its watch.
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
	// An agent is listed once, however many conversations follow it.
	if p.agents[key.Agent] == nil {
		p.agents[key.Agent] = &polledAgent{id: key.Agent, due: time.Now()}
	}
	p.watches[s.Conversation] = newRESTWatch(p, s, key)
}

// hasWatch reports whether a conversation of the agent is followed.
func (p *poller) hasWatch(agent string) bool {
	for _, w := range p.watches {
		if w.session.Agent == agent {
			return true
		}
	}
	return false
}

// nextDue returns the agent and the history that are due first. Either may be nil. A history is due only after its agent's runs
// were listed once.
func (p *poller) nextDue() (a *polledAgent, w *restWatch) {
	// A pass over the maps takes far less time than a request.
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

// nextTime returns the time of the next request, or the zero time without agents.
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

// pollNext sends the request that is due. Lists and histories alternate, so that neither delays the other.
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

// listRuns lists an agent's newest runs and compares them with the previous list. Each run that has started or ended makes its
// conversation's history due. If the lists have no run in common, more runs have started than one list contains, so all
// histories of the agent are due.
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
			p.agent.log().Warn("the runs of an agent can't be listed at the Letta server; retrying", "agent", a.id, "error", err)
		}
		a.retryDelay = min(max(2*a.retryDelay, p.agent.times.poll), maxPollPause)
		// The server's own wish counts if it is longer than the pause.
		if f != nil && f.retryAfter > a.retryDelay {
			a.retryDelay = f.retryAfter
		}
		a.due = time.Now().Add(a.retryDelay)
		return nil
	}
	runs, overlap := map[string]runInfo{}, false
	for _, i := range list {
		if i.Agent != a.id {
			continue // the server doesn't support the filter
		}
		runs[i.ID] = i
		old, isListed := a.runs[i.ID]
		overlap = overlap || isListed
		switch {
		case isListed && old.Status == i.Status:
		case a.runs == nil && i.isOver(): // first list: newRESTWatch has made all histories due
		default:
			a.lastChange = time.Now()
			p.runChanged(ctx, i, a.runs != nil && !isListed)
		}
	}
	// More runs than a list contains have started since the last one, so runs are missing from both lists.
	if a.runs != nil && !overlap && len(list) >= pollRuns {
		for _, w := range p.watches {
			if w.session.Agent == a.id {
				w.readNow()
			}
		}
	}
	// An agent without runs for a minute is polled less often. Its next run shows up that much later.
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

// runChanged makes the histories due in which a run has started or ended. isNew says that the previous list didn't contain the
// run.
func (p *poller) runChanged(ctx context.Context, i runInfo, isNew bool) {
	if i.Conversation == "" && i.Metadata.Type == blockingType {
		// An old blocking run that isn't over was left behind by a server that was killed, and will never end.
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

// awaitBlocking starts to wait for a blocking run. The server doesn't say which conversation it belongs to, so it may be any
// whose last message isn't older than the run.
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
		isCandidate := err != nil // without the list, any conversation may be the one
		for _, c := range list {
			isCandidate = isCandidate || c.ID == w.session.Conversation && c.At.After(i.Created.Add(-clockSkew))
		}
		if isCandidate {
			w.blockingRuns[i.ID] = time.Now()
			w.readBy(time.Now().Add(p.agent.times.poll))
		}
	}
}

// readHistory reads a conversation's history. After a failure it tries again with growing pauses. If the server doesn't know
// the conversation, following ends: the conversation's next turn creates another session.
func (p *poller) readHistory(ctx context.Context, w *restWatch) {
	// The request that is due is being made. Whatever asks for the history meanwhile makes it due again.
	w.due, w.isUrgent = time.Time{}, false
	err := w.readHistory(ctx, p.agents[w.session.Agent].runs)
	var f *failure
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, agent.ErrNoSession), errors.As(err, &f) && f.status == http.StatusNotFound:
		delete(p.watches, w.conversation)
		if !p.hasWatch(w.session.Agent) {
			delete(p.agents, w.session.Agent)
		}
	case err != nil:
		if w.retryDelay == 0 {
			p.agent.log().Warn("the history of a conversation can't be read from the Letta server; retrying", "conversation", w.conversation, "error", err)
		}
		w.retryDelay = min(max(2*w.retryDelay, p.agent.times.poll), maxPollPause)
		w.readBy(time.Now().Add(w.retryDelay))
	default:
		w.retryDelay = 0
	}
}

// restCursor is how far a session's history is recorded in the conversation. The journal stores it together with the entries.
type restCursor struct {
	Session session  `json:"session"`
	Row     string   `json:"row,omitempty"`  // the last message that was recorded
	Runs    []string `json:"runs,omitempty"` // the last runs that were recorded; the server may still store messages of theirs
}

// maxCursorRuns limits restCursor.Runs.
const maxCursorRuns = 16

// parseRESTCursor decodes a stored cursor. ok is false if raw is empty or belongs to another session.
func parseRESTCursor(raw json.RawMessage, key session) (at restCursor, ok bool) {
	if json.Unmarshal(raw, &at) != nil || at.Session != key {
		return restCursor{Session: key}, false
	}
	return at, true
}
