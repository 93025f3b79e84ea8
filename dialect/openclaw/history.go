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
	key        []byte
	raw        []byte
}

func (w *row) parse(object []byte) {
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
		case "idempotencyKey":
			w.key = c.bytes()
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
	for c.hasNext(']') {
		var w row
		w.parse(c.raw())
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

// catchUp goes through a run's rows beside what was shown of it, and adds what is missing.
func (d *decoder) catchUp(r *run, rows []row) error {
	if len(rows) > 0 {
		d.release(r)
	}
	at := walk{thoughts: r.unread(rows)}
	for _, s := range r.Texts {
		if s.Tight.N > 0 {
			at.segments = append(at.segments, s)
		}
	}
	for _, w := range rows {
		if err := r.bounded(); err != nil {
			return err // each row costs as much as there are parts
		}
		switch string(w.role) {
		case "assistant":
			if err := d.assistantRow(r, &at, &w); err != nil {
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
func (d *decoder) assistantRow(r *run, at *walk, w *row) error {
	c := cursor{b: w.content}
	if !c.enter('[') {
		return nil
	}
	thought := thoughtOf(w)
	for c.hasNext(']') {
		if err := r.bounded(); err != nil {
			return err
		}
		b := readBlock(&c)
		switch string(b.kind) {
		case "text":
			d.matchText(r, at, w.text(b.text))
		case "thinking":
			d.thought(r, at, thought)
			thought = ""
		case "toolCall":
			at.tool = true
			if err := d.tool(r, &agentData{call: b.id, name: b.name, phase: []byte("start"), args: b.args}); err != nil {
				return err
			}
		}
	}
	return nil
}

// warning ends the key of a row in which the gateway says that the run failed. What the model had said follows behind a blank line.
const warning = ":terminal-error"

// text returns what the model says in a text of the row.
func (w *row) text(text string) string {
	if strings.HasSuffix(string(w.key), warning) {
		_, text, _ = strings.Cut(text, event.JoinBlank)
	}
	return text
}

// thoughtOf returns the reasoning of a row, whose blocks the gateway streams as one.
func thoughtOf(w *row) string {
	c := cursor{b: w.content}
	if string(w.role) != "assistant" || !c.enter('[') {
		return ""
	}
	var texts []string
	for c.hasNext(']') {
		if b := readBlock(&c); string(b.kind) == "thinking" && strings.Trim(b.text, space) != "" {
			texts = append(texts, strings.Trim(b.text, space))
		}
	}
	return strings.Join(texts, "\n")
}

// unread returns the reasoning that was streamed and that none of the rows repeats word by word.
func (r *run) unread(rows []row) (unread []*segment) {
	var texts []string
	for i := range rows {
		if text := thoughtOf(&rows[i]); text != "" {
			texts = append(texts, text)
		}
	}
	for _, s := range r.Thoughts {
		if !slices.ContainsFunc(texts, func(text string) bool { _, ok := s.Tight.begins(text); return ok }) {
			unread = append(unread, s)
		}
	}
	return unread
}

// thought completes the reasoning that a row repeats, or shows it if it was not streamed. A gateway may stream it in other words than
// it keeps; so as long as there is reasoning that no row repeats, that is taken for it.
func (d *decoder) thought(r *run, at *walk, text string) {
	if text == "" {
		return
	}
	for _, s := range r.Thoughts {
		if end, ok := s.Tight.begins(text); ok && s.Tight.N > 0 {
			d.add(r, s, strings.TrimRight(text[end:], space))
			return
		}
	}
	if len(at.thoughts) > 0 {
		at.thoughts = at.thoughts[1:]
		return
	}
	d.show(r, begin(&r.Thoughts, event.KindReasoning, ordinal("thinking:", r.Thoughts)), text)
}

// beside finds a text among the segments that were shown, and completes its segment. A text that is missing behind all of them
// is a segment of its own. One that is missing between two goes to the end of the one before, as finals have it, or to the
// beginning of the one behind if a tool came before it. What is missing before all is put before the first.
func (d *decoder) matchText(r *run, w *walk, text string) {
	screenedText := screenWhole(strings.TrimSuffix(text, truncated))
	text = screenedText.visible
	var of tight
	if of.add(text); of.N == 0 {
		d.addMedia(r, screenedText)
		return
	}
	for i, s := range w.segments {
		if end, ok := s.endIn(text); ok {
			s.Buffered = "" // it stands in the text, as what it came to
			if suffix := strings.TrimRight(text[end:], space); len(w.missing) > 0 {
				d.show(r, s, strings.Join(append(w.missing, text), event.JoinBlank))
			} else {
				d.add(r, s, suffix)
			}
			w.pass(s, i)
			r.markRead(of, s)
			d.addMedia(r, screenedText)
			return
		}
	}
	if part, ok := r.wasRead(of); ok {
		for i, s := range w.segments {
			if s.Part == part {
				w.pass(s, i)
				break
			}
		}
		d.addMedia(r, screenedText)
		return
	}
	switch {
	case len(w.segments) == 0:
		s := begin(&r.Texts, event.KindText, historyPrefix+strconv.Itoa(len(r.Texts)+1))
		d.show(r, s, strings.Join(append(w.missing, text), event.JoinBlank))
		s.IsOver = true
		w.pass(s, -1)
		r.markRead(of, s)
	case w.before != nil && !w.tool:
		d.add(r, w.before, event.JoinBlank+text)
		r.markRead(of, w.before)
	default:
		w.missing = append(w.missing, text)
	}
	d.addMedia(r, screenedText)
}

// walk is how far a history was gone through beside what is shown.
type walk struct {
	segments []*segment // behind
	before   *segment   // the last that was found
	tool     bool       // a tool was called since
	missing  []string   // texts to be put before the next that is found
	thoughts []*segment // reasoning that no row repeats
}

// pass goes on behind a segment, which is at i of those shown.
func (w *walk) pass(s *segment, i int) {
	w.before, w.tool, w.missing, w.segments = s, false, nil, w.segments[i+1:]
}

// known is a text of a history that is among what is shown, without what follows it in its segment.
type readText struct {
	tight
	Part string `json:"part,omitempty"` // of the segment
}

// read takes note of a text of a history that is among what is shown.
func (r *run) markRead(of tight, s *segment) {
	if _, ok := r.wasRead(of); !ok {
		r.Read = append(r.Read, readText{of, s.Part})
	}
}

// wasRead returns the part that shows a text of a history.
func (r *run) wasRead(of tight) (part string, ok bool) {
	for _, k := range r.Read {
		if k.tight == of {
			return k.Part, true
		}
	}
	return "", false
}

// endIn returns where in a text the segment ends that it begins with.
func (s *segment) endIn(text string) (end int, ok bool) {
	if s.Visible.begins(text) {
		return int(s.Visible.Len()), true
	}
	return s.Tight.begins(text)
}

// unnamed gives the segment that came whole from elsewhere before the gateway's own frame of it, which names it.
func (r *run) unnamed(text string) *segment {
	for _, s := range r.Texts {
		isFromHistory := strings.HasPrefix(s.Part, historyPrefix) || strings.HasPrefix(s.Part, preamblePrefix)
		if isFromHistory && s.Item == "" && s.Tight.is(text) {
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
		case "text", "thinking":
			if text := c.snapshot(); text != "" {
				b.text = text
			}
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
