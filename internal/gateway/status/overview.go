package status

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/signals"
	"github.com/leat-dev/leat/internal/store/journal"
)

const (
	// lookEvery is how soon a change of a process is noticed.
	lookEvery = time.Second
	// checkEvery is how often an agent is asked whether it is there, while somebody looks; downEvery while it is not.
	checkEvery = 30 * time.Second
	downEvery  = 5 * time.Second
	// looks is how long somebody looks who has asked once.
	looks = 10 * time.Second
	// maxTurns bounds the turns that are told of.
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

	failure string // why it is about to fail, for operators
}

// Look is what an operator sees at a glance.
type View struct {
	Time     int64    `json:"now"`
	Agents   []Health `json:"agents"`
	Channels []Health `json:"channels"`
	// Turns are the oldest of those that have not ended.
	Turns []Open `json:"turns"`
	// Damaged are conversations that can't be read.
	Damaged []Damage `json:"damaged,omitempty"`
}

// Damage is what was found wrong with a stored conversation.
type Damage struct {
	Conversation string `json:"conversation"`
	Seq          int64  `json:"seq,omitempty"` // of the first event that can't be read, if it is an event
	Error        string `json:"error"`
}

// Overview knows how agents and channels are, and which turns are open. The fields are set before Run and not changed.
type Overview struct {
	// Agents and Channels list those that there are. They are asked often, and do not wait.
	Agents, Channels func() []Member
	// Damaged lists the damage that the journal has found.
	Damaged func() []journal.DamageError
	// Channel names the channel whose chat a conversation is; empty where it is none's.
	Channel func(*journal.Summary) string

	mu       sync.Mutex
	agents   map[string]*member
	channels map[string]*member
	turns    map[string]*Open
	lastRead time.Time // when somebody looked last
}

var (
	_ gateway.Watcher        = (*Overview)(nil)
	_ gateway.FailureWatcher = (*Overview)(nil)
)

// NewOverview returns one that knows of nothing.
func NewOverview() *Overview {
	noMembers := func() []Member { return nil }
	return &Overview{
		Agents: noMembers, Channels: noMembers, Damaged: func() []journal.DamageError { return nil }, Channel: func(*journal.Summary) string { return "" },
		agents: map[string]*member{}, channels: map[string]*member{}, turns: map[string]*Open{},
	}
}

// Recall takes from the log of signals what agents did before this process. It is called before Run.
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

// Resume takes up a turn that was found open at the start. find tells how it is now, and whether it is open.
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
	// Had it ended before it was known here, nobody would tell of that again.
	_, open, err = find()
	if err == nil && !open {
		o.mu.Lock()
		delete(o.turns, t.Turn)
		o.mu.Unlock()
	}
	return err
}

func get(members map[string]*member, name string) *member {
	m := members[name]
	if m == nil {
		m = &member{Health: Health{Name: name}}
		members[name] = m
	}
	return m
}

// Committed implements [gateway.Watcher].
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
				continue // it ends with the turn around it
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

// TurnFailed implements [gateway.FailureWatcher].
func (o *Overview) TurnFailed(turn, detail string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t := o.turns[turn]; t != nil {
		t.failure = detail
	}
}

// forget drops what was said of a conversation that changed behind its turns. An error's text may quote it.
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
		for id, t := range o.turns {
			if t.Conversation == conversation {
				delete(o.turns, id)
			}
		}
	}
}

// Run notices what no event tells of, until ctx ends: that processes come and go and, while somebody looks, what agents say when
// they are asked whether they are there.
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

// look finds out how all are, and has those checked whose time has come.
func (o *Overview) check(ask func(*member, func(context.Context) error)) {
	agents, channels := o.Agents(), o.Channels() // which take locks of their own
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
			if m.State == ConditionDown {
				due = downEvery
			}
			if ask != nil && x.Check != nil && x.State == nil && !m.isChecking && checkTime.Sub(o.lastRead) < looks && checkTime.Sub(m.checked) >= due {
				m.isChecking, m.checked = true, checkTime
				ask(m, x.Check)
			}
		}
	}
}

// Look returns how all are now.
func (o *Overview) Snapshot() View {
	o.mu.Lock()
	o.lastRead = time.Now()
	o.mu.Unlock()
	o.check(nil)
	agents, channels, damaged := names(o.Agents()), names(o.Channels()), o.Damaged()
	o.mu.Lock()
	defer o.mu.Unlock()
	l := View{Time: time.Now().UnixMilli(), Agents: list(o.agents, agents), Channels: list(o.channels, channels), Turns: []Open{}}
	for _, t := range o.turns {
		l.Turns = append(l.Turns, *t)
	}
	slices.SortFunc(l.Turns, func(a, b Open) int { return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.Turn, b.Turn)) })
	l.Turns = l.Turns[:min(len(l.Turns), maxTurns)]
	for _, d := range damaged[:min(len(damaged), maxTurns)] {
		l.Damaged = append(l.Damaged, Damage{Conversation: d.Conversation, Seq: d.Seq, Error: d.Err.Error()})
	}
	return l
}

func names(members []Member) (names []string) {
	for _, x := range members {
		names = append(names, x.Name)
	}
	slices.Sort(names)
	return names
}

func list(members map[string]*member, names []string) []Health {
	health := []Health{}
	for _, name := range names {
		if m := members[name]; m != nil && m.hasCondition {
			health = append(health, m.Health)
		}
	}
	return health
}
