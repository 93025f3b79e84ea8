package feed

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// oracle folds a log naively: without merging, resuming or windows, and without package transcript. The viewers' transcripts
// are compared with it.
type oracle struct {
	title    string
	meta     map[string]string
	order    []string
	messages map[string]*oracleMessage
	turns    map[string]*oracleTurn
	changes  map[string][]change // of each thing that a viewer sees, in order
}

// change is the value that a thing got at a seq.
type change struct {
	seq   int64
	value string
}

type oracleMessage struct {
	id, turn string
	state    event.MessageState
	seq      int64
	ended    bool
	parts    []*oraclePart
}

type oraclePart struct {
	id, join, title, url string
	kind                 event.PartKind
	state                event.PartState
	fields               map[string]string
	history              []string
	ended                bool
}

type oracleTurn struct {
	state               transcript.TurnState
	outcome, phase, run string
	answers, parent     string
	first               int64
	requests            []string
}

func newOracle() *oracle {
	return &oracle{meta: map[string]string{}, messages: map[string]*oracleMessage{}, turns: map[string]*oracleTurn{}, changes: map[string][]change{}}
}

func (o *oracle) clone() *oracle {
	c := *o
	c.meta, c.order = maps.Clone(o.meta), slices.Clone(o.order)
	c.changes = make(map[string][]change, len(o.changes))
	for k, l := range o.changes {
		c.changes[k] = slices.Clip(l)
	}
	c.messages, c.turns = map[string]*oracleMessage{}, map[string]*oracleTurn{}
	for id, m := range o.messages {
		cm := *m
		cm.parts = nil
		for _, p := range m.parts {
			cp := *p
			cp.fields, cp.history = maps.Clone(p.fields), slices.Clone(p.history)
			cm.parts = append(cm.parts, &cp)
		}
		c.messages[id] = &cm
	}
	for id, t := range o.turns {
		ct := *t
		ct.requests = slices.Clone(t.requests)
		c.turns[id] = &ct
	}
	return &c
}

func (m *oracleMessage) part(id string) *oraclePart {
	for _, p := range m.parts {
		if p.id == id {
			return p
		}
	}
	return nil
}

func (o *oracle) apply(e event.Event) {
	o.fold(e)
	set := func(key, value string) {
		if l := o.changes[key]; len(l) == 0 || l[len(l)-1].value != value {
			o.changes[key] = append(l, change{e.Seq, value})
		}
	}
	for _, m := range o.messages {
		if m.id == e.Message || (m.turn == e.Turn && e.Type == event.TurnEnd) {
			m.things(set)
		}
	}
	if t := o.turns[e.Turn]; t != nil {
		t.things(e.Turn, set)
	}
}

// things calls set for each changeable thing of a message.
func (m *oracleMessage) things(set func(key, value string)) {
	set(m.id+" state", string(m.state))
	set(m.id+" ended", fmt.Sprint(m.ended))
	for _, p := range m.parts {
		k := m.id + "/" + p.id + " "
		for _, f := range transcript.Fields {
			set(k+f.Name(), p.fields[f.Name()])
		}
		set(k+"state", string(p.state))
		set(k+"title", p.title)
		set(k+"url", p.url)
		set(k+"ended", fmt.Sprint(p.ended))
		set(k+"history", fmt.Sprintf("%q", p.history))
	}
}

func (t *oracleTurn) things(id string, set func(key, value string)) {
	set(id+" state", string(t.state)+t.outcome)
	set(id+" phase", t.phase)
	set(id+" run", t.run)
	set(id+" requests", fmt.Sprintf("%q", t.requests))
}

// unsaid returns a thing that went back for a viewer: it has an older value than at a seq that the viewer has seen, or a value
// that it never had. seen is the viewer's state so far, and is updated.
func (o *oracle) unsaid(t *transcript.Transcript, seen map[string]int64, trimmed int64) string {
	fault := ""
	look := func(key, value string) {
		l := o.changes[key]
		for i, c := range l {
			if c.value == value && (i == len(l)-1 || l[i+1].seq > seen[key]) {
				seen[key] = max(seen[key], c.seq)
				return
			}
		}
		fault = fmt.Sprintf("%s is %q; it was as of %d, and has been %v", key, value, seen[key], l)
	}
	for _, m := range t.Messages {
		oracleOf(m).things(look)
	}
	for _, turn := range t.Turns {
		if want := o.turns[turn.ID]; want != nil && want.first > trimmed {
			oracleOfTurn(turn).things(turn.ID, look)
		}
	}
	return fault
}

func (o *oracle) fold(e event.Event) {
	b := e.Get()
	m := o.messages[e.Message]
	var p *oraclePart
	if m != nil {
		p = m.part(e.Part)
	}
	switch e.Type {
	case event.MessageAdd, event.MessageStart:
		m = &oracleMessage{id: e.Message, turn: e.Turn, seq: e.Seq, ended: e.Type == event.MessageAdd}
		for i, q := range b.Parts {
			join := ""
			if i > 0 {
				join = event.JoinBlank
			}
			m.parts = append(m.parts, &oraclePart{id: fmt.Sprintf("p%d", i+1), kind: q.Kind, join: join, fields: map[string]string{"text": q.Text}, ended: true})
		}
		o.messages[e.Message] = m
		o.order = append(o.order, e.Message)
	case event.MessageUpdate:
		m.state = b.MessageState
	case event.MessageEnd:
		m.ended = true
	case event.PartStart:
		m.parts = append(m.parts, &oraclePart{id: e.Part, kind: b.Kind, join: b.Join, fields: map[string]string{}})
	case event.PartAppend, event.PartReplace:
		if e.Type == event.PartReplace {
			p.fields[e.Field.Name()] = ""
		} else if int(e.Offset) != len(p.fields[e.Field.Name()]) {
			panic(fmt.Sprintf("the schedule is wrong: offset %d at %d", e.Offset, e.Seq))
		}
		p.fields[e.Field.Name()] += e.Text
		if n := strings.TrimSpace(e.Note); n != "" && (len(p.history) == 0 || p.history[len(p.history)-1] != n) {
			p.history = append(p.history, n)
		}
	case event.PartUpdate:
		if b.State != "" {
			p.state = b.State
		}
		if b.Title != nil {
			p.title = *b.Title
		}
		if b.Media != nil {
			p.url = b.Media.URL
		}
	case event.PartEnd:
		p.ended = true
	case event.TurnQueue:
		o.turns[e.Turn] = &oracleTurn{state: "queued", answers: b.Answers, parent: b.Parent, first: e.Seq}
	case event.TurnStart:
		if o.turns[e.Turn] == nil {
			o.turns[e.Turn] = &oracleTurn{answers: b.Answers, parent: b.Parent, first: e.Seq}
		}
		o.turns[e.Turn].state = "running"
	case event.TurnUpdate:
		if b.Phase != "" {
			o.turns[e.Turn].phase = b.Phase
		}
		if b.Upstream != nil {
			o.turns[e.Turn].run = b.Upstream.Run
		}
	case event.TurnWait:
		t := o.turns[e.Turn]
		t.state, t.requests = "waiting", append(t.requests, b.Request.ID)
	case event.TurnResume:
		t := o.turns[e.Turn]
		t.requests = slices.DeleteFunc(t.requests, func(id string) bool { return id == b.Answer.ID })
		if len(t.requests) == 0 {
			t.state = "running"
		}
	case event.TurnEnd:
		t := o.turns[e.Turn]
		t.state, t.outcome, t.requests = "ended", string(b.Outcome), nil
		for _, m := range o.messages {
			if m.turn == e.Turn {
				m.ended = true
				for _, p := range m.parts {
					p.ended = true
					if p.state == event.PartRunning {
						p.state = event.PartFailed
					}
				}
			}
		}
	case event.ConversationUpdate:
		if b.Title != nil {
			o.title = *b.Title
		}
		for k, v := range b.Metadata {
			if o.meta[k] = string(v); string(v) == "null" {
				delete(o.meta, k)
			}
		}
	case event.ConversationTruncate:
		keep := 0
		if e.Message != "" {
			keep = slices.Index(o.order, e.Message) + 1
		}
		o.truncate(keep)
	}
}

// truncate removes the messages from an index on, the turns that answered them, turns without any remaining message, and their
// child turns.
func (o *oracle) truncate(keep int) {
	said, stays := map[string]bool{}, map[string]bool{}
	for i, id := range o.order {
		said[o.messages[id].turn] = true
		stays[o.messages[id].turn] = stays[o.messages[id].turn] || i < keep
	}
	if keep == len(o.order) && keep > 0 {
		return
	}
	for _, id := range o.order[keep:] {
		delete(o.messages, id)
	}
	o.order = o.order[:keep]
	ids := slices.SortedFunc(maps.Keys(o.turns), func(a, b string) int { return int(o.turns[a].first - o.turns[b].first) })
	for _, id := range ids {
		t := o.turns[id]
		gone := keep == 0 || (t.answers != "" && o.messages[t.answers] == nil) || (t.answers == "" && said[id] && !stays[id]) || (t.parent != "" && o.turns[t.parent] == nil && !stays[id])
		if t.state == "ended" && gone {
			delete(o.turns, id)
		}
	}
}

func (m *oracleMessage) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s turn=%s state=%s ended=%v", m.id, m.turn, m.state, m.ended)
	for _, p := range m.parts {
		fmt.Fprintf(&b, "\n    %s %s join=%q state=%s title=%s url=%s ended=%v history=%q", p.id, p.kind, p.join, p.state, p.title, p.url, p.ended, p.history)
		for _, f := range transcript.Fields {
			fmt.Fprintf(&b, " %s=%q", f.Name(), p.fields[f.Name()])
		}
	}
	return b.String()
}

func (t *oracleTurn) String() string {
	return fmt.Sprintf("state=%s outcome=%s phase=%s run=%s answers=%s requests=%q", t.state, t.outcome, t.phase, t.run, t.answers, t.requests)
}

// oracleOf converts a viewer's message to the oracle's form.
func oracleOf(m *transcript.Message) *oracleMessage {
	o := &oracleMessage{id: m.ID, turn: m.Turn, state: m.State, ended: m.Final}
	for _, p := range m.Parts {
		q := &oraclePart{id: p.ID, kind: p.Kind, join: p.Join, state: p.State, title: p.Title, ended: p.Final, history: p.History(), fields: map[string]string{}}
		if p.Media != nil {
			q.url = p.Media.URL
		}
		for _, f := range transcript.Fields {
			q.fields[f.Name()] = p.Text(f)
		}
		o.parts = append(o.parts, q)
	}
	return o
}

func oracleOfTurn(t *transcript.Turn) *oracleTurn {
	o := &oracleTurn{state: t.State, outcome: string(t.Outcome), phase: t.Phase, answers: t.Answers}
	if t.Upstream != nil {
		o.run = t.Upstream.Run
	}
	for _, r := range t.Requests {
		o.requests = append(o.requests, r.ID)
	}
	return o
}

// differ describes how a viewer's transcript differs from the log. From its first message on, everything must be present once
// and in order. Trimmed messages may be present or not.
func (o *oracle) differ(t *transcript.Transcript, trimmed int64) string {
	order := o.order
	if len(t.Messages) > 0 {
		i := slices.Index(order, t.Messages[0].ID)
		if i < 0 {
			return fmt.Sprintf("first message %s is not in the log", t.Messages[0].ID)
		}
		order = order[i:]
	} else {
		order = slices.DeleteFunc(slices.Clone(order), func(id string) bool { return o.messages[id].seq <= trimmed })
	}
	for i, id := range order {
		if i >= len(t.Messages) {
			return fmt.Sprintf("message %s and later are missing", id)
		}
		if got, want := oracleOf(t.Messages[i]).String(), o.messages[id].String(); got != want {
			return fmt.Sprintf("message %d\n  viewer %s\n  log    %s", i, got, want)
		}
	}
	if len(t.Messages) > len(order) {
		return fmt.Sprintf("message %s is too many", t.Messages[len(order)].ID)
	}
	held := map[string]bool{}
	for _, turn := range t.Turns {
		if held[turn.ID] {
			return fmt.Sprintf("turn %s is there twice", turn.ID)
		}
		held[turn.ID] = true
		want := o.turns[turn.ID]
		if want == nil {
			return fmt.Sprintf("turn %s is not in the log", turn.ID)
		}
		if got := oracleOfTurn(turn).String(); got != want.String() && want.first > trimmed {
			return fmt.Sprintf("turn %s\n  viewer %s\n  log    %s", turn.ID, got, want)
		}
	}
	for id, turn := range o.turns {
		needed := turn.state != "ended"
		for _, m := range t.Messages {
			needed = needed || m.Turn == id || m.ID == turn.answers
		}
		if needed && !held[id] && turn.first > trimmed {
			return fmt.Sprintf("turn %s is missing: %s", id, turn)
		}
	}
	if trimmed > 0 {
		return "" // what an update set may be gone with it
	}
	meta := map[string]string{}
	for k, v := range t.Metadata {
		meta[k] = string(v)
	}
	if t.Title != o.title || !maps.Equal(meta, o.meta) {
		return fmt.Sprintf("conversation: viewer %q %v, log %q %v", t.Title, meta, o.title, o.meta)
	}
	return ""
}
