// Merging a range of events into one operation for each field, which is what readers get who are behind.

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

// partKey identifies a part: its id is unique only within its message.
type partKey struct{ message, part string }

type fieldKey struct {
	partKey
	field event.Field
}

// merger collects merged events in the order of the first event of each; finish sorts them by the last. The indexes are positions
// in ops of the events into which a further event of the same field, part, turn or conversation is merged.
type merger struct {
	ops     []merged
	history History

	fields       map[fieldKey]int
	parts        map[partKey]int // updates of parts
	turns        map[string]int  // updates of turns
	conversation int             // update of the conversation, or -1

	// The field of the last operation and its index, or -1. The next operation most often has the same field, so this saves a look-up in
	// fields for nearly every event.
	last      fieldKey
	lastIndex int

	ends   map[partKey]int // ends of parts
	trails map[partKey]*trail
}

// merged is an event of the result.
type merged struct {
	event.Event
	text     []byte // replaces Text if two operations were merged; a buffer, so that n appends don't copy the text n times
	hasNotes bool   // an operation in it had a note or a history
}

// add merges the next event into an earlier one, or appends it. Nothing is merged across a truncate. Updates of a turn are
// not merged across its start, nor updates of parts across the end of a turn: a merged update takes effect at the seq of its last event, so
// an old value would override what the start or the end has set.
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
		delete(g.turns, e.Turn) // the start sets the same fields as an update
	case event.TurnEnd:
		g.parts = nil // the end sets running tools to failed
	case event.PartEnd:
		setKey(&g.ends, partKey{e.Message, e.Part}, len(g.ops))
	}
	g.ops = append(g.ops, merged{Event: *e})
}

// op merges an operation on a field. If it or the operation before it has notes, the result needs the part's whole history, because a reader
// could not tell which of the notes it has already seen. If the history isn't known, the operation remains separate.
func (g *merger) op(e *event.Event) {
	k := fieldKey{partKey{e.Message, e.Part}, e.Field}
	hasNote := e.Note != "" || e.History != nil
	var tr *trail
	if hasNote {
		tr = g.trail(k.partKey)
		tr.add(e)
	}
	// The part may have ended already: a final text can still be retracted.
	if e.Type == event.PartReplace {
		g.retract(k)
	}
	i, ok := g.lastIndex, true
	if i < 0 || k != g.last {
		i, ok = g.fields[k]
	}
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
		// If several fields of the part have notes, a note may be merged into an operation that is sorted after this one, so each has the whole
		// history.
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

// op folds e, a later operation on the same field, into m. An append extends the text of m and keeps its type and offset, so a
// replace with appends after it stays a replace. A replace discards the text before it. Notes are those of m; the caller sets the
// history.
func (m *merged) op(e *event.Event) {
	if e.FirstSeq() <= m.Seq {
		// The ranges overlap: e was merged before, from events that include those of m, so it is complete without m.
		firstSeq := min(m.FirstSeq(), e.MergedFrom)
		m.Event, m.text = *e, nil
		m.MergedFrom = firstSeq
		return
	}
	firstSeq, typ, offset, note, extend, history := m.FirstSeq(), m.Type, m.Offset, m.Note, m.Extend, m.History
	if e.Type == event.PartReplace {
		m.text, typ, offset = append(m.text[:0], e.Text...), e.Type, 0
	} else {
		// The buffer gets twice the room that it needs now, because more appends usually follow.
		if m.text == nil {
			m.text = append(make([]byte, 0, 2*(len(m.Text)+len(e.Text))), m.Text...)
		}
		m.text = append(m.text, e.Text...)
	}
	m.Event = *e
	m.MergedFrom, m.Type, m.Offset, m.Note, m.Extend, m.History = firstSeq, typ, offset, note, extend, history
}

// update folds e, a later update of the same part, turn or conversation, into m.
func (m *merged) update(e *event.Event) {
	firstSeq, body := m.FirstSeq(), mergeBody(m.Get(), e.Get())
	m.Event = *e
	m.MergedFrom, m.Body = firstSeq, body
}

// retract removes the checksum of a field from its part's end, because a replace after the end has changed the field.
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

// finish returns the merged events in the order of their seqs, which are those of the last event in each.
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

// trail returns the trail of a part, and creates it if needed.
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
	firstSeq   int64       // seq of the first operation with notes
	field      event.Field // of that operation
	mixed      bool        // operations of several fields had notes
	since      []noteOp    // the notes of the range, until the list is complete
	notes      []string    // the complete list, if isComplete
	isComplete bool
	lookedUp   bool // the notes from before the range were asked for
}

// noteOp is the note of one operation.
type noteOp struct {
	text   string
	extend bool
}

// add records the notes of an operation. An operation with a history has the complete list. After a failed look-up single notes are no longer
// recorded: only a history can complete the list then.
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
	case !tr.lookedUp:
		tr.since = append(tr.since, noteOp{e.Note, e.Extend})
	}
}

// load completes the list with the notes from before the range, which it looks up once, and reports whether the list is complete.
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

// mergeBody returns the body of two updates of the same thing, a before b: the fields of a, overwritten by those that b has. It
// must set every field that an update can have; a field that is missing here is lost in compacted logs.
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
	setIfAny(&m.Step, b.Step)
	setIfAny(&m.Upstream, b.Upstream)
	setIfAny(&m.Title, b.Title)
	setIfAny(&m.Media, b.Media)
	setIfAny(&m.Error, b.Error)
	if b.Data != nil {
		m.Data = b.Data
	}
	// The maps of both bodies may be shared with other events, so neither is changed.
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
