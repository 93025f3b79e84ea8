package transcript

import (
	"maps"
	"slices"

	"github.com/leat-dev/leat/event"
)

// MaxPiece bounds, in bytes, the text of one event as it is sent; a longer one goes out in pieces.
const MaxPiece = 256 << 10

// Merge gives one operation for each field of a contiguous range of events, and one update for each part, turn and
// conversation, each at the place and with the seq of its last. history returns a part's notes as of a seq; it may be
// nil where the range begins at the first event of the log. The events given are not changed.
func Merge(events []event.Event, history func(message, part string, seq int64) []string) []event.Event {
	g := merger{out: make([]event.Event, 0, len(events)), at: map[mergeKey]int{}, history: history}
	for i := range events {
		g.add(&events[i])
	}
	return g.done()
}

// Compact merges a whole log, and leaves out what a truncate has removed.
func Compact(events []event.Event) []event.Event { return Merge(dropTruncated(events), nil) }

type mergeKey struct {
	kind                 byte // o field operation, p part.update, t turn.update, c conversation.update
	turn, message, field string
	part                 string
}

// run is what a merged field operation is made of.
type run struct {
	text    []byte
	notes   []string // of the range
	base    []string // History of a compacted operation in it
	hasBase bool
}

type merger struct {
	out     []event.Event // a slot with an empty type has moved to a later one
	at      map[mergeKey]int
	runs    map[int]*run // by slot
	ends    map[mergeKey]int
	history func(string, string, int64) []string
}

func (g *merger) add(e *event.Event) {
	var k mergeKey
	switch e.Type {
	case event.PartAppend, event.PartReplace:
		k = mergeKey{kind: 'o', message: e.Message, part: e.Part, field: string(e.Field)}
	case event.PartUpdate:
		k = mergeKey{kind: 'p', message: e.Message, part: e.Part}
	case event.TurnUpdate:
		k = mergeKey{kind: 't', turn: e.Turn}
	case event.ConversationUpdate:
		k = mergeKey{kind: 'c'}
	case event.ConversationTruncate:
		clear(g.at)
	case event.TurnEnd:
		// What a part was set to before an end must not be set again after it.
		maps.DeleteFunc(g.at, func(k mergeKey, _ int) bool { return k.kind == 'p' })
	case event.PartEnd:
		if g.ends == nil {
			g.ends = map[mergeKey]int{}
		}
		g.ends[mergeKey{message: e.Message, part: e.Part}] = len(g.out)
	}
	if k.kind == 0 {
		g.out = append(g.out, *e)
		return
	}
	slot := len(g.out)
	old, known := g.at[k]
	g.at[k] = slot
	if k.kind == 'o' && e.Type == event.PartReplace {
		g.retract(e)
	}
	if !known {
		g.out = append(g.out, *e)
		return
	}
	prev := &g.out[old]
	m := *e
	m.First = prev.FirstSeq()
	if k.kind == 'o' {
		g.op(prev, &m, old, slot)
	} else {
		m.Body = mergeBody(prev.Get(), e.Get())
	}
	g.out = append(g.out, m)
	g.out[old] = event.Event{}
}

// retract drops the check of a field that a later replace changes after the part's end.
func (g *merger) retract(e *event.Event) {
	i, ok := g.ends[mergeKey{message: e.Message, part: e.Part}]
	if !ok {
		return
	}
	b := *g.out[i].Get()
	b.Sums = maps.Clone(b.Sums)
	delete(b.Sums, e.Field.Name())
	g.out[i].Body = &b
}

// op folds e, the later operation, with the one before it.
func (g *merger) op(prev, e *event.Event, old, slot int) {
	if g.runs == nil {
		g.runs = map[int]*run{}
	}
	r := g.runs[old]
	if r == nil {
		r = &run{text: append(make([]byte, 0, 2*(len(prev.Text)+len(e.Text))), prev.Text...)}
		r.note(prev)
	}
	delete(g.runs, old)
	g.runs[slot] = r
	r.note(e)
	if e.Type == event.PartReplace {
		r.text = append(r.text[:0], e.Text...)
		return
	}
	r.text = append(r.text, e.Text...)
	e.Type, e.Offset = prev.Type, prev.Offset
}

func (r *run) note(e *event.Event) {
	if e.History != nil {
		r.base, r.hasBase, r.notes = e.History, true, nil
	} else if e.Note != "" {
		r.notes = append(r.notes, e.Note)
	}
}

func (g *merger) done() []event.Event {
	for slot, r := range g.runs {
		e := &g.out[slot]
		e.Text = string(r.text)
		if !r.hasBase && r.notes == nil {
			continue
		}
		e.Note = ""
		switch {
		case r.hasBase:
			e.History = slices.Clone(r.base)
		case g.history != nil:
			e.History = g.history(e.Message, e.Part, e.First-1)
		}
		for _, n := range r.notes {
			e.History = addNote(e.History, n)
		}
	}
	return slices.DeleteFunc(g.out, func(e event.Event) bool { return e.Type == "" })
}

func mergeBody(a, b *event.Body) *event.Body {
	m := *a
	set(&m.State, b.State)
	set(&m.Name, b.Name)
	set(&m.Phase, b.Phase)
	set(&m.Model, b.Model)
	if b.Step != 0 {
		m.Step = b.Step
	}
	if b.Upstream != nil {
		m.Upstream = b.Upstream
	}
	if b.Title != nil {
		m.Title = b.Title
	}
	if b.Media != nil {
		m.Media = b.Media
	}
	if b.Error != nil {
		m.Error = b.Error
	}
	if b.Data != nil {
		m.Data = b.Data
	}
	if len(b.Metadata) > 0 {
		m.Metadata = maps.Clone(a.Metadata)
		if m.Metadata == nil {
			m.Metadata = b.Metadata
		} else {
			maps.Copy(m.Metadata, b.Metadata)
		}
	}
	return &m
}

// dropTruncated leaves out the messages and turns that a truncate in events removes.
func dropTruncated(events []event.Event) []event.Event {
	if !slices.ContainsFunc(events, func(e event.Event) bool { return e.Type == event.ConversationTruncate }) {
		return events
	}
	var t Transcript
	for i := range events {
		_ = t.Apply(&events[i]) // a log's own events apply; what does not is dropped by every reader alike
	}
	return slices.DeleteFunc(slices.Clone(events), func(e event.Event) bool {
		switch {
		case e.Message != "" && e.Type != event.ConversationTruncate:
			return t.messages[e.Message] == nil
		case e.Turn != "":
			return t.turns[e.Turn] == nil
		}
		return false
	})
}

// Split cuts every text above limit bytes into pieces at boundaries of UTF-8; all but the last carry More.
func Split(events []event.Event, limit int) []event.Event {
	if !slices.ContainsFunc(events, func(e event.Event) bool { return len(e.Text) > limit }) {
		return events
	}
	out := make([]event.Event, 0, len(events)+4)
	for _, e := range events {
		offset := e.Offset
		for len(e.Text) > limit {
			n := limit
			for n > 0 && e.Text[n]&0xc0 == 0x80 {
				n--
			}
			piece := e
			piece.Text, piece.More, piece.Note, piece.History = e.Text[:n], true, "", nil
			out = append(out, piece)
			e.Text, e.Type = e.Text[n:], event.PartAppend
			offset += int64(n)
			e.Offset = offset
		}
		out = append(out, e)
	}
	return out
}
