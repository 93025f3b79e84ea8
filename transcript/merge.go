package transcript

import (
	"cmp"
	"maps"
	"slices"

	"github.com/leat-dev/leat/event"
)

// History returns a part's notes up to a seq. It returns false if it doesn't know them.
type History func(message, part string, seq int64) ([]string, bool)

// Merge reduces a contiguous range of events to one operation for each field, and one update for each part, each turn and the
// conversation. A merged event has the seq of the last event in it. Nothing is merged across a truncate, and updates of a part
// are not merged across the end of a turn, because that end changes running tools.
//
// history returns the notes from before the range. Operations on a part whose notes it doesn't know are not merged. It may be nil if
// every part with notes began in the range. Merge doesn't change events.
func Merge(events []event.Event, history History) []event.Event {
	g := merger{history: history, lastIndex: -1, conversation: -1}
	for i := range events {
		g.add(&events[i])
	}
	return g.finish()
}

type partKey struct{ message, part string }

type fieldKey struct {
	partKey
	field event.Field
}

// merger holds what comes out in order of the first event of each; done puts it in order of the last. The maps and indexes
// say where in out the next event of that thing is merged into.
type merger struct {
	ops     []merged
	history History

	fields       map[fieldKey]int
	parts        map[partKey]int
	turns        map[string]int
	conversation int // -1: nowhere

	// The field of the last operation, which is most often that of the next one too.
	last      fieldKey
	lastIndex int // -1: none

	ends   map[partKey]int
	trails map[partKey]*trail
}

type merged struct {
	event.Event
	text     []byte // stands for Text once two were merged
	hasNotes bool   // an operation in it had a note or a history
}

func (g *merger) add(e *event.Event) {
	switch e.Type {
	case event.PartAppend, event.PartReplace:
		g.op(e)
		return
	case event.PartUpdate:
		k := partKey{e.Message, e.Part}
		if i, ok := g.parts[k]; ok {
			g.ops[i].update(e)
			return
		}
		setKey(&g.parts, k, len(g.ops))
	case event.TurnUpdate:
		if i, ok := g.turns[e.Turn]; ok {
			g.ops[i].update(e)
			return
		}
		setKey(&g.turns, e.Turn, len(g.ops))
	case event.ConversationUpdate:
		if g.conversation >= 0 {
			g.ops[g.conversation].update(e)
			return
		}
		g.conversation = len(g.ops)
	case event.ConversationTruncate:
		g.fields, g.parts, g.turns, g.conversation, g.lastIndex = nil, nil, nil, -1, -1
	case event.TurnQueue, event.TurnStart:
		delete(g.turns, e.Turn) // what a turn was set to before it must not be set again after
	case event.TurnEnd:
		g.parts = nil // for the same reason: an end sets running tools to failed
	case event.PartEnd:
		setKey(&g.ends, partKey{e.Message, e.Part}, len(g.ops))
	}
	g.ops = append(g.ops, merged{Event: *e})
}

// op takes an operation on a field.
func (g *merger) op(e *event.Event) {
	k := fieldKey{partKey{e.Message, e.Part}, e.Field}
	hasNote := e.Note != "" || e.History != nil
	var tr *trail
	if hasNote {
		tr = g.trail(k.partKey)
		tr.add(e)
	}
	if e.Type == event.PartReplace {
		g.retract(k)
	}
	i, ok := g.lastIndex, true
	if i < 0 || k != g.last {
		i, ok = g.fields[k]
	}
	// A merged operation with notes carries the whole history. If that isn't known, the operation is not merged.
	if ok && (hasNote || g.ops[i].hasNotes) {
		if tr == nil {
			tr = g.trail(k.partKey)
		}
		ok = tr.load(g.history, k.partKey)
	}
	history := ok
	if !ok {
		i = len(g.ops)
		setKey(&g.fields, k, i)
		g.ops = append(g.ops, merged{Event: *e})
		// A note of another field may merge into an operation that comes after this one.
		history = hasNote && tr.mixed && tr.load(g.history, k.partKey)
	} else {
		g.ops[i].op(e)
	}
	m := &g.ops[i]
	m.hasNotes = m.hasNotes || hasNote
	if history && m.hasNotes {
		m.Note, m.Extend, m.History = "", false, slices.Clip(tr.notes)
		if m.History == nil {
			m.History = []string{} // not nil: the part has an empty list of notes
		}
	}
	g.last, g.lastIndex = k, i
}

// op folds e, a later operation on the same field, into m.
func (m *merged) op(e *event.Event) {
	if e.FirstSeq() <= m.Seq {
		// e was merged before from more than the range holds, and is whole by itself.
		firstSeq := min(m.FirstSeq(), e.MergedFrom)
		m.Event, m.text = *e, nil
		m.MergedFrom = firstSeq
		return
	}
	firstSeq, typ, offset, note, extend, history := m.FirstSeq(), m.Type, m.Offset, m.Note, m.Extend, m.History
	if e.Type == event.PartReplace {
		m.text, typ, offset = append(m.text[:0], e.Text...), e.Type, 0
	} else {
		if m.text == nil {
			m.text = append(make([]byte, 0, 2*(len(m.Text)+len(e.Text))), m.Text...)
		}
		m.text = append(m.text, e.Text...)
	}
	m.Event = *e
	m.MergedFrom, m.Type, m.Offset, m.Note, m.Extend, m.History = firstSeq, typ, offset, note, extend, history
}

// update folds e, a later update of the same thing, into m.
func (m *merged) update(e *event.Event) {
	firstSeq, body := m.FirstSeq(), mergeBody(m.Get(), e.Get())
	m.Event = *e
	m.MergedFrom, m.Body = firstSeq, body
}

// retract drops the check of a field that changes after its part's end.
func (g *merger) retract(k fieldKey) {
	i, ok := g.ends[k.partKey]
	if !ok {
		return
	}
	b := *g.ops[i].Get()
	b.Sums = maps.Clone(b.Sums)
	delete(b.Sums, k.field.Name())
	g.ops[i].Body = &b
}

func (g *merger) finish() []event.Event {
	slices.SortStableFunc(g.ops, func(a, b merged) int { return cmp.Compare(a.Seq, b.Seq) })
	events := make([]event.Event, len(g.ops))
	for i := range g.ops {
		m := &g.ops[i]
		if m.text != nil {
			m.Text = string(m.text)
		}
		events[i] = m.Event
	}
	return events
}

func (g *merger) trail(k partKey) *trail {
	tr := g.trails[k]
	if tr == nil {
		tr = &trail{}
		setKey(&g.trails, k, tr)
	}
	return tr
}

// trail is the callback history of one part up to the current event of the range.
type trail struct {
	firstSeq   int64 // seq of the first noted operation
	field      event.Field
	mixed      bool     // operations of several fields had notes
	since      []noteOp // the range's, while the list is not known
	notes      []string // the whole list, once it is known
	isComplete bool
	lookedUp   bool
}

// noteOp is the note of one operation.
type noteOp struct {
	text   string
	extend bool
}

func (tr *trail) add(e *event.Event) {
	if tr.firstSeq == 0 {
		tr.firstSeq, tr.field = e.FirstSeq(), e.Field
	}
	tr.mixed = tr.mixed || e.Field != tr.field
	switch {
	case e.History != nil:
		tr.notes, tr.isComplete, tr.since = JoinHistories(e.History), true, nil
	case tr.isComplete:
		tr.notes = addNote(tr.notes, e.Note, e.Extend)
	case !tr.lookedUp: // else it never will be known by what comes one by one
		tr.since = append(tr.since, noteOp{e.Note, e.Extend})
	}
}

// load sets notes to the whole list, and reports whether the list is known.
func (tr *trail) load(history History, k partKey) bool {
	if tr.isComplete || tr.lookedUp {
		return tr.isComplete
	}
	tr.lookedUp = true
	var before []string
	tr.isComplete = true
	if history != nil {
		before, tr.isComplete = history(k.message, k.part, tr.firstSeq-1)
	}
	if tr.isComplete {
		tr.notes = slices.Clone(before)
		for _, n := range tr.since {
			tr.notes = addNote(tr.notes, n.text, n.extend)
		}
	}
	tr.since = nil
	return tr.isComplete
}

func mergeBody(a, b *event.Body) *event.Body {
	m := *a
	setIfAny(&m.State, b.State)
	setIfAny(&m.MessageState, b.MessageState)
	setIfAny(&m.Name, b.Name)
	setIfAny(&m.Agent, b.Agent)
	setIfAny(&m.Answers, b.Answers)
	setIfAny(&m.Parent, b.Parent)
	setIfAny(&m.Source, b.Source)
	setIfAny(&m.Phase, b.Phase)
	setIfAny(&m.Model, b.Model)
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

// setKey sets a key of a map, which it creates if needed.
func setKey[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}
