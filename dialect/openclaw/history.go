package openclaw

import (
	"slices"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/event"
)

// These begin the part keys of segments that came whole, and not by an assistant's frames.
const (
	historyPrefix  = "history:"
	preamblePrefix = "preamble:"
)

// truncated ends a text of which a history shows the beginning.
const truncated = "\n...(truncated)..."

// row is a message of a history.
type row struct {
	role, run  []byte
	content    []byte // as it stands
	call, name []byte // of a tool's result
	isError    bool
	raw        []byte
}

func (w *row) read(object []byte) {
	w.raw = object
	c := cursor{b: object}
	if !c.enter('{') {
		return
	}
	var key []byte
	for c.next(&key) {
		switch string(key) {
		case "role":
			w.role = c.bytes()
		case "content":
			w.content = c.raw()
		case "toolCallId":
			w.call = c.bytes()
		case "toolName":
			w.name = c.bytes()
		case "isError":
			w.isError = c.bool()
		case "__openclaw":
			w.run = member(c.raw(), "runId")
		default:
			c.skip()
		}
	}
}

// history adds what the open runs have in a response to chat.history.
func (d *decoder) history(p *payload) error {
	var rows []row
	c := cursor{b: p.messages}
	if !c.enter('[') {
		return nil
	}
	for c.more(']') {
		var w row
		w.read(c.raw())
		rows = append(rows, w)
	}
	for _, r := range d.Runs {
		if err := d.catchUp(r, rowsOf(r, rows)); err != nil {
			return err
		}
	}
	return nil
}

// rowsOf gives the rows of a run. Before protocol 4 rows name none: who knows whose they are has to name it.
func rowsOf(r *run, rows []row) []row {
	var of []row
	for _, w := range rows {
		if string(w.run) == r.ID {
			of = append(of, w)
		}
	}
	return of
}

// catchUp goes through a run's rows beside what was shown of it. A text that is not among what was shown is added only
// behind all of that: elsewhere the run's end brings it, see reconcile.
func (d *decoder) catchUp(r *run, rows []row) error {
	var at walk
	for _, s := range r.Texts {
		if s.Tight.N > 0 {
			at.shown = append(at.shown, s)
		}
	}
	for _, w := range rows {
		if err := r.bounded(); err != nil {
			return err // each row costs as much as there are parts
		}
		switch string(w.role) {
		case "assistant":
			if err := d.said(r, &at, &w); err != nil {
				return err
			}
		case "toolResult":
			a := agentData{call: w.call, name: w.name, phase: []byte("result"), result: w.raw, isError: w.isError}
			if err := d.tool(r, &a); err != nil {
				return err
			}
		}
	}
	return nil
}

// said goes through the content of an assistant's row.
func (d *decoder) said(r *run, at *walk, w *row) error {
	c := cursor{b: w.content}
	if !c.enter('[') {
		return nil
	}
	for c.more(']') {
		if err := r.bounded(); err != nil {
			return err
		}
		b := readBlock(&c)
		switch string(b.kind) {
		case "text":
			d.beside(r, at, b.text)
		case "toolCall":
			if err := d.tool(r, &agentData{call: b.id, name: b.name, phase: []byte("start"), args: b.args}); err != nil {
				return err
			}
		}
	}
	return nil
}

// beside finds a text among the segments that were shown, and completes its segment. One that is missing between two of
// them goes to the end of the one before, as finals have it; one that is missing behind all is a segment of its own. What is
// missing before all can't be told from what is not shown: the run's end brings it.
func (d *decoder) beside(r *run, w *walk, text string) {
	whole := screenWhole(strings.TrimSuffix(text, truncated))
	text = whole.shown
	var of tight
	if of.add(text); of.N == 0 {
		d.found(r, whole)
		return
	}
	for i, s := range w.shown {
		if end, ok := s.endIn(text); ok {
			s.Held = "" // it stands in the text, as what it came to
			d.add(r, s, strings.TrimRight(text[end:], space))
			w.before, w.shown = s, w.shown[i+1:]
			r.read(of)
			d.found(r, whole)
			return
		}
	}
	switch {
	case slices.Contains(r.Read, of):
	case len(w.shown) == 0:
		r.read(of)
		s := begin(&r.Texts, event.KindText, historyPrefix+strconv.Itoa(len(r.Texts)+1))
		d.show(r, s, text)
		s.Over, w.before = true, s
	case w.before != nil:
		r.read(of)
		d.add(r, w.before, event.JoinBlank+text)
	default:
		return
	}
	d.found(r, whole)
}

// walk is how far a history was gone through beside what is shown.
type walk struct {
	shown  []*segment // behind
	before *segment   // the last that was found
}

// read takes note of a text of a history that is among what is shown.
func (r *run) read(of tight) {
	if !slices.Contains(r.Read, of) {
		r.Read = append(r.Read, of)
	}
}

// endIn returns where in a text the segment ends that it begins with.
func (s *segment) endIn(text string) (end int, ok bool) {
	if s.Shown.begins(text) {
		return int(s.Shown.Len()), true
	}
	return s.Tight.begins(text)
}

// unnamed gives the segment that came whole from elsewhere before the gateway's own frame of it, which names it.
func (r *run) unnamed(text string) *segment {
	for _, s := range r.Texts {
		whole := strings.HasPrefix(s.Part, historyPrefix) || strings.HasPrefix(s.Part, preamblePrefix)
		if whole && s.Item == "" && s.Tight.is(text) {
			return s
		}
	}
	return nil
}

// historyBlock is a piece of a row's content.
type historyBlock struct {
	kind, id, name []byte
	args           []byte // as they stand
	text           string
}

func readBlock(c *cursor) (b historyBlock) {
	if !c.enter('{') {
		return b
	}
	var key []byte
	for c.next(&key) {
		switch string(key) {
		case "type":
			b.kind = c.bytes()
		case "text":
			b.text = c.snapshot()
		case "id":
			b.id = c.bytes()
		case "name":
			b.name = c.bytes()
		case "arguments":
			b.args = c.raw()
		default:
			c.skip()
		}
	}
	return b
}
