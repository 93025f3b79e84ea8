// The recent events of a feed. Old ones are dropped at the limits; readers behind them read the log.

package feed

import (
	"math"
	"sort"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// tail holds consecutive events (from, from+len(marks)]. Most events append to a text that the fold has anyway, so a tail stores only
// where in the text they are. A batch takes the appends of thousands of events from the fold's text as one string, without a copy.
type tail struct {
	from int64
	// Of the events from+1, from+2, and so on.
	marks []mark
	// Of all events up to the last, from some starting point.
	cost int64
	// Approximate memory.
	bytes int

	// Runs that the next append to a field may extend.
	open map[fieldKey]*run
	// Number of calls of after.
	batches int64
}

// mark is one event of a tail.
type mark struct {
	run *run
	// Of the events before this one, from the tail's starting point.
	cost int64
	at   int64
	// Position of an append's text in the text of the run.
	start, end uint32
}

// fieldKey identifies a text.
type fieldKey struct {
	message, part string
	field         event.Field
}

// run is a series of plain appends to one text, without another operation on the text in between. Or it is a single event of any
// kind.
type run struct {
	// event is the single event, or an append without its seq, time, offset and text.
	event    event.Event
	isSingle bool
	// Of the fold, up to the end of the last append.
	text string
	// Seq of the last event.
	last int64
	// Bytes of text that the fold has dropped and only the run retains.
	pinned int

	// The event with the appends of the run in the result of after number batch.
	batch int64
	index int
}

const (
	// runMemory is the approximate memory of a run, markMemory that of a mark, in bytes.
	runMemory  = 400
	markMemory = 32
)

// add appends the next event, which fold has applied. If its seq leaves a gap, a new tail begins there: events in the gap were merged
// into a later one, and a reader before the gap may need them too. A merged event without a gap is added like any other, because
// everything merged into it lies before from.
func (t *tail) add(e *event.Event, fold *transcript.Transcript, maxEvents, maxBytes int) {
	if e.Seq != t.head()+1 {
		t.reset(e.Seq - 1)
	}
	m := mark{cost: t.cost, at: e.At}
	k := fieldKey{e.Message, e.Part, e.Field}
	if text, ok := appendedText(e, fold); ok {
		m.run, m.start, m.end = t.extend(k, e), uint32(e.Offset), uint32(len(text))
		m.run.text, m.run.last = text, e.Seq
	} else {
		if e.Op() {
			t.seal(k)
		}
		if e.Note != "" || e.History != nil {
			t.sealPart(e.Message, e.Part)
		}
		m.run = &run{event: *e, isSingle: true, last: e.Seq}
		t.bytes += runMemory + int(cost(e))
	}
	t.marks = append(t.marks, m)
	t.cost += cost(e)
	t.bytes += markMemory
	// The tail may grow to one and a half times its limit, so that only some calls copy it.
	if len(t.marks) > maxEvents+maxEvents/2 || t.bytes > maxBytes+maxBytes/2 {
		t.shrink(maxEvents, maxBytes)
	}
}

// appendedText returns the text of the fold that ends with the text of e. It returns false if e is anything but a plain append with
// that effect. The texts are compared, so no rule of the fold has to be repeated here.
func appendedText(e *event.Event, fold *transcript.Transcript) (text string, ok bool) {
	if e.Type != event.PartAppend || e.MergedFrom != 0 || e.Note != "" || e.Extend || e.History != nil || e.Partial || e.Body != nil || e.Offset < 0 {
		return "", false
	}
	if m := fold.Message(e.Message); m != nil {
		if p := m.Part(e.Part); p != nil {
			text = p.Text(e.Field)
		}
	}
	end := e.Offset + int64(len(e.Text))
	return text, end == int64(len(text)) && end <= math.MaxUint32 && text[e.Offset:] == e.Text
}

// extend returns the run to which e belongs: that of the append before it, or a new one.
func (t *tail) extend(k fieldKey, e *event.Event) *run {
	if r := t.open[k]; r != nil && e.Offset == int64(len(r.text)) && e.Turn == r.event.Turn {
		return r
	}
	t.seal(k)
	r := &run{event: event.Event{Type: event.PartAppend, Turn: e.Turn, Message: e.Message, Part: e.Part, Field: e.Field}}
	if t.open == nil {
		t.open = map[fieldKey]*run{}
	}
	t.open[k] = r
	t.bytes += runMemory
	return r
}

// seal ends the run of a text that the fold drops or replaces. The run still has the text, so it is counted from now on.
func (t *tail) seal(k fieldKey) {
	if r := t.open[k]; r != nil {
		delete(t.open, k)
		r.pinned = len(r.text)
		t.bytes += r.pinned
	}
}

// sealPart ends the runs of all texts of a part. An operation with a note does that: merging gives the notes so far to the next operation on
// the part, which must therefore not have begun before the note.
func (t *tail) sealPart(message, part string) {
	for _, f := range transcript.Fields {
		t.seal(fieldKey{message, part, f})
	}
}

// sealMissing ends the runs of the messages that fold no longer has.
func (t *tail) sealMissing(fold *transcript.Transcript) {
	for k := range t.open {
		if fold.Message(k.message) == nil {
			t.seal(k)
		}
	}
}

// reset empties the tail and lets it begin after from. Readers before from must then read the log, or get a snapshot.
func (t *tail) reset(from int64) { *t = tail{from: from} }

// head returns the seq of the last event.
func (t *tail) head() int64 { return t.from + int64(len(t.marks)) }

// shrink drops the oldest events beyond the limits. It drops from the front, so head stays the same, and copies the
// others, so that the dropped ones are freed.
func (t *tail) shrink(maxEvents, maxBytes int) {
	n := 0
	for n < len(t.marks) && (len(t.marks)-n > maxEvents || t.bytes > maxBytes) {
		n++
		t.from++
		t.bytes -= markMemory
		if r := t.marks[n-1].run; r.last == t.from {
			t.drop(r)
		}
	}
	if n > 0 {
		room := (len(t.marks)-n)*3/2 + 2 // room until the next shrink
		t.marks = append(make([]mark, 0, room), t.marks[n:]...)
	}
}

// drop forgets a run whose events have all been dropped.
func (t *tail) drop(r *run) {
	if r.isSingle {
		t.bytes -= runMemory + int(cost(&r.event))
		return
	}
	t.bytes -= runMemory + r.pinned
	if k := (fieldKey{r.event.Message, r.event.Part, r.event.Field}); t.open[k] == r {
		delete(t.open, k)
	}
}

// upto returns the seq of the last event in a batch after seq that costs about budget. A batch has at least one event. A budget of
// 0 means no limit. seq must be at least from and below head.
func (t *tail) upto(seq int64, budget int) int64 {
	if budget <= 0 {
		return t.head()
	}
	i := int(seq - t.from)
	n := sort.Search(len(t.marks)-i-1, func(k int) bool { return t.marks[i+1+k].cost-t.marks[i].cost >= int64(budget) })
	return seq + 1 + int64(n)
}

// after returns the events after a seq, up to another one, with the appends of a run as one event, as [transcript.Merge] merges them. The
// events are in the order of the first event of each. It also returns the time of the first event. The caller holds
// the feed's lock, since it writes to the runs. The events are its own, but their texts are those of the fold.
func (t *tail) after(seq, upto int64) (events []event.Event, oldest int64) {
	t.batches++
	marks := t.marks[seq-t.from : upto-t.from]
	for i := range marks {
		seq++
		r := marks[i].run
		if r.batch != t.batches {
			r.batch, r.index = t.batches, len(events)
			events = append(events, marks[i].event(seq))
			continue
		}
		e := &events[r.index]
		if e.MergedFrom == 0 {
			e.MergedFrom = e.Seq
		}
		e.Seq, e.At, e.Text = seq, marks[i].at, r.text[e.Offset:marks[i].end]
	}
	return events, marks[0].at
}

// inOrder returns the events after a seq, up to another one, in their own order: only neighbouring appends of a run are one event. A reader
// that stops after any of these events has everything up to its seq, and nothing beyond.
func (t *tail) inOrder(seq, upto int64) (events []event.Event) {
	var last *run
	for i := seq - t.from; i < upto-t.from; i++ {
		m := &t.marks[i]
		if m.run != last || m.run.isSingle {
			events = append(events, m.event(t.from+1+i))
			last = m.run
			continue
		}
		e := &events[len(events)-1]
		if e.MergedFrom == 0 {
			e.MergedFrom = e.Seq
		}
		e.Seq, e.At, e.Text = t.from+1+i, m.at, m.run.text[e.Offset:m.end]
	}
	return events
}

// event returns the event of a mark, as it was added.
func (m *mark) event(seq int64) event.Event {
	e := m.run.event
	if !m.run.isSingle {
		e.Seq, e.At, e.Offset, e.Text = seq, m.at, int64(m.start), m.run.text[m.start:m.end]
	}
	return e
}

// cost is the approximate size that an event adds to a merged batch, in bytes. It need not be exact: it decides where
// a batch ends and when old events are dropped.
func cost(e *event.Event) int64 {
	n := len(e.Text) + len(e.Note)
	for _, h := range e.History {
		n += len(h)
	}
	if e.Type != event.PartAppend {
		n += 128
	}
	if b := e.Body; b != nil {
		n += 64 + len(b.Data)
		for i := range b.Parts {
			n += 64 + len(b.Parts[i].Text) + len(b.Parts[i].Data)
		}
		for k, v := range b.Metadata {
			n += len(k) + len(v)
		}
	}
	return int64(n) + 8
}
