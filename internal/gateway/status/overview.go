// The overview of the gateway for operators: the health of agents and channels, open turns, and damaged conversations.

package status

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/signals"
	"github.com/leat-dev/leat/internal/store/journal"
)

const (
	// lookEvery is the interval at which Run polls processes.
	lookEvery = time.Second
	// checkEvery is the interval of checks of an agent while an operator is watching, and downEvery that of an agent that is down.
	checkEvery = 30 * time.Second
	downEvery  = 5 * time.Second
	// looks is how long an operator counts as watching after a Snapshot.
	looks = 10 * time.Second
	// maxTurns bounds the turns and the damaged conversations in a view.
	maxTurns = 100
)

// Open is a turn that has not ended.
type Open struct {
	Turn         string `json:"turn"`
	Conversation string `json:"conversation"`
	Title        string `json:"title,omitempty"`
	Agent        string `json:"agent,omitempty"`
	State        string `json:"state"` // queued, running or waiting
	Since        int64  `json:"since"`

	failure string // cause of a failure that is about to be committed, for operators
}

// view is a snapshot of the gateway's status for operators.
type view struct {
	Time     int64    `json:"now"`
	Agents   []health `json:"agents"`
	Channels []health `json:"channels"`
	// Turns are the oldest open turns, 100 at most.
	Turns []Open `json:"turns"`
	// Damaged lists conversations that can't be read in full, 100 at most.
	Damaged []damage `json:"damaged,omitempty"`
}

// damage describes what is wrong with a stored conversation.
type damage struct {
	Conversation string `json:"conversation"`
	Seq          int64  `json:"seq,omitempty"` // first event that can't be read; 0 if the damage is elsewhere
	Error        string `json:"error"`
}

// Overview tracks the health of agents and channels, and the open turns. Set the fields before Run, and don't change them
// afterwards. The methods may be called from several goroutines.
type Overview struct {
	// Agents and Channels return the configured members. They are called every second, so they must not block.
	Agents, Channels func() []Member
	// Damaged returns the damage that the journal has found.
	Damaged func() []journal.DamageError
	// Channel returns the channel that a conversation belongs to, or "" if it isn't a chat of a channel.
	Channel func(*journal.Summary) string

	mu       sync.Mutex         // protects the fields below
	agents   map[string]*member // by name
	channels map[string]*member // by name
	turns    map[string]*Open   // by id
	lastRead time.Time          // time of the last Snapshot
}

var (
	_ gateway.Watcher        = (*Overview)(nil)
	_ gateway.FailureWatcher = (*Overview)(nil)
)

// NewOverview returns an overview without members, channels or turns. Its functions return nothing until the caller sets them, so that it can
// be registered for metrics before the rest of the app exists.
func NewOverview() *Overview {
	noMembers := func() []Member { return nil }
	return &Overview{
		Agents: noMembers, Channels: noMembers, Damaged: func() []journal.DamageError { return nil }, Channel: func(*journal.Summary) string { return "" },
		agents: map[string]*member{}, channels: map[string]*member{}, turns: map[string]*Open{},
	}
}

// Recall restores the last activity and the last error of each agent from the stored signals, so that they survive a restart.
// Call it before Run. Later entries replace earlier ones, so entries must be in order.
func (o *Overview) Recall(entries []signals.Entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range entries {
		var x struct {
			TS      int64  `json:"ts"`
			Stream  string `json:"stream"`
			AgentID string `json:"agentId"`
			Payload struct {
				Phase string `json:"phase"`
				Code  string `json:"code"`
			} `json:"payload"`
		}
		if e.Type != signals.AgentEvent || e.RunID == "" || json.Unmarshal(e.JSON, &x) != nil || x.AgentID == "" {
			continue
		}
		m := get(o.agents, x.AgentID)
		m.LastEvent, m.Conversation = x.TS, e.Conversation
		if x.Stream == streamLifecycle && x.Payload.Phase == "error" {
			m.Error, m.ErrorAt, m.Turn, m.ErrorIn = cmp.Or(x.Payload.Code, "failed"), x.TS, e.RunID, e.Conversation
		}
	}
}

// Resume adds a turn that was open when the gateway started. find returns the stored turn and whether it is still open. find is called
// twice: a turn that ended between the first call and the insertion would otherwise stay in the overview forever, since
// Committed has seen its end before.
func (o *Overview) Resume(find func() (t Open, open bool, err error)) error {
	t, open, err := find()
	if err != nil || !open {
		return err
	}
	o.mu.Lock()
	if o.turns[t.Turn] == nil {
		o.turns[t.Turn] = &t
	}
	o.mu.Unlock()
	_, open, err = find()
	if err == nil && !open {
		o.mu.Lock()
		delete(o.turns, t.Turn)
		o.mu.Unlock()
	}
	return err
}

// get returns the member of that name, and adds it if it is missing. Events may name agents that are no longer configured: they get a
// member too, which list leaves out.
func get(members map[string]*member, name string) *member {
	m := members[name]
	if m == nil {
		m = &member{health: health{Name: name}}
		members[name] = m
	}
	return m
}

// Committed implements [gateway.Watcher]. It follows turns from the queue to their end, and records the last event of agents and
// channels. Nested turns with a parent and no source are left out, because they end with their parent.
func (o *Overview) Committed(s *journal.Summary, events []event.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if name := o.Channel(s); name != "" {
		m := get(o.channels, name)
		m.LastEvent, m.Conversation = time.Now().UnixMilli(), s.ID
	}
	for i := range events {
		e := &events[i]
		b := e.Get()
		switch e.Type {
		case event.ConversationDelete, event.ConversationTruncate:
			o.forget(s.ID, e.Type == event.ConversationDelete)
			continue
		case event.TurnQueue, event.TurnStart:
			if b.Parent != "" && b.Source == "" {
				continue
			}
			t := &Open{Turn: e.Turn, Conversation: s.ID, Agent: b.Agent, State: "running", Since: e.At}
			if e.Type == event.TurnQueue {
				t.State = "queued"
			}
			o.turns[e.Turn] = t
		}
		t := o.turns[e.Turn]
		if t == nil {
			continue
		}
		t.Title = s.Title
		m := get(o.agents, cmp.Or(t.Agent, gateway.PushAgent))
		m.LastEvent, m.Conversation = e.At, s.ID
		switch e.Type {
		case event.TurnWait:
			t.State = "waiting"
		case event.TurnResume:
			t.State = "running"
		case event.TurnEnd:
			delete(o.turns, e.Turn)
			m.turnEnded(e, s.ID, t.failure)
		}
	}
}

// TurnFailed implements [gateway.FailureWatcher]. The gateway calls it before it commits the end of the turn, with a detail
// that only operators may see. Committed then uses the detail in place of the error for viewers.
func (o *Overview) TurnFailed(turn, detail string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t := o.turns[turn]; t != nil {
		t.failure = detail
	}
}

// forget drops the errors and links that point to a conversation that was deleted or truncated, since an error's text may quote
// it. If the conversation was deleted, its turns go too, because their ends will not be committed.
func (o *Overview) forget(conversation string, isDeleted bool) {
	for _, members := range []map[string]*member{o.agents, o.channels} {
		for _, m := range members {
			if m.ErrorIn == conversation {
				m.Error, m.ErrorAt, m.Turn, m.ErrorIn = "", 0, "", ""
			}
			if isDeleted && m.Conversation == conversation {
				m.Conversation = ""
			}
		}
	}
	if isDeleted {
		maps.DeleteFunc(o.turns, func(_ string, t *Open) bool { return t.Conversation == conversation })
	}
}

// Run polls the processes of members every second and, while an operator is watching, checks agents that have no process.
// Polling is necessary because neither a process that exits nor an agent that can't be reached commits an event. Each check runs in a
// goroutine, so a slow agent delays no other. Run returns when ctx has ended and all checks have returned.
func (o *Overview) Run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var checks sync.WaitGroup
	defer checks.Wait()
	for {
		o.check(func(m *member, check func(context.Context) error) {
			checks.Go(func() {
				err := check(ctx)
				o.mu.Lock()
				defer o.mu.Unlock()
				m.isChecking = false
				if ctx.Err() == nil {
					m.checks(err)
				}
			})
		})
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// check updates the condition of all members. If ask is not nil, it is called for each member that is due for a health check; it must
// not block, because o.mu is locked. A check is due only while an operator is watching, at most every 30 seconds, or every 5 seconds for
// a member that is down. Members with a process need none, because their process reports its state.
func (o *Overview) check(ask func(*member, func(context.Context) error)) {
	agents, channels := o.Agents(), o.Channels() // outside o.mu, because they lock other mutexes
	o.mu.Lock()
	defer o.mu.Unlock()
	checkTime := time.Now()
	for _, kind := range []struct {
		members map[string]*member
		there   []Member
	}{{o.agents, agents}, {o.channels, channels}} {
		for _, x := range kind.there {
			m := get(kind.members, x.Name)
			m.Kind, m.Default = x.Kind, x.Default
			m.is(x, checkTime)
			due := checkEvery
			if m.State == conditionDown {
				due = downEvery
			}
			if ask != nil && x.Check != nil && x.State == nil && !m.isChecking && checkTime.Sub(o.lastRead) < looks && checkTime.Sub(m.checked) >= due {
				m.isChecking, m.checked = true, checkTime
				ask(m, x.Check)
			}
		}
	}
}

// Snapshot returns the current status of the gateway. For the next ten seconds an operator counts as watching, so that Run checks
// agents. Agents and channels are sorted by name, turns by age.
func (o *Overview) Snapshot() view {
	o.mu.Lock()
	o.lastRead = time.Now()
	o.mu.Unlock()
	o.check(nil)
	agents, channels, damaged := o.Agents(), o.Channels(), o.Damaged()
	o.mu.Lock()
	defer o.mu.Unlock()
	l := view{Time: time.Now().UnixMilli(), Agents: list(o.agents, agents), Channels: list(o.channels, channels), Turns: []Open{}}
	for _, t := range o.turns {
		l.Turns = append(l.Turns, *t)
	}
	slices.SortFunc(l.Turns, func(a, b Open) int { return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.Turn, b.Turn)) })
	l.Turns = l.Turns[:min(len(l.Turns), maxTurns)]
	for _, d := range damaged[:min(len(damaged), maxTurns)] {
		l.Damaged = append(l.Damaged, damage{Conversation: d.Conversation, Seq: d.Seq, Error: d.Err.Error()})
	}
	return l
}

// Condition returns the health of an agent in one word, and why it isn't up. Both are empty if nothing is known. Someone is about to choose
// an agent, so one that is down is checked again.
func (o *Overview) Condition(agent string) (state, reason string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m := o.agents[agent]
	if m == nil {
		return "", ""
	}
	cond := m.State
	if m.away {
		cond = conditionDown // a turn has just found it so, and the next check will
	}
	switch cond {
	case conditionDown:
		o.lastRead = time.Now()
		reason = m.Error
	case conditionFailing:
		reason = m.Error
	case "", conditionUnknown:
		return "", ""
	}
	return string(cond), reason
}

// list returns the health of the configured members, sorted by name. A member whose condition isn't known yet is left out. A member that
// was removed from the configuration keeps its entry in the map, but is not listed. The overview's mutex must be locked.
func list(members map[string]*member, configured []Member) []health {
	result := []health{}
	for _, x := range configured {
		if m := members[x.Name]; m != nil && m.hasCondition {
			result = append(result, m.health)
		}
	}
	slices.SortFunc(result, func(a, b health) int { return cmp.Compare(a.Name, b.Name) })
	return result
}
