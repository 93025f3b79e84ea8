// The rows of a session's history, with which a run is completed after a reconnection.

package openclaw

import (
	"slices"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/event"
)

// The prefixes of the part keys of segments that did not come from assistant frames.
const (
	historyPrefix  = "history:"
	preamblePrefix = "preamble:"
)

// truncated is the end of a text that a history has shortened.
const truncated = "\n...(truncated)..."

// row is a message in a history. Its slices point into the frame.
type row struct {
	role, run []byte
	// content is a list of blocks or a string, as undecoded JSON.
	content []byte
	// call and name are those of the tool whose result the row is.
	call, name []byte
	isError    bool
	// key is the idempotency key of the row, whose end marks the report of a failure. raw is the whole row.
	key []byte
	raw []byte
}

// parse decodes a row.
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

// history adds what a response to chat.history has of the open runs and was not streamed. It may be called any number
// of times for the same rows: texts that were added once are recognized. Rows of runs that have ended, and of other
// runs, are ignored.
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

// rowsOf returns the rows of a run. Rows of protocol 3 don't name their run; the client has to add the name before it decodes
// them.
func rowsOf(r *run, rows []row) []row {
	var of []row
	for _, w := range rows {
		if string(w.run) == r.ID {
			of = append(of, w)
		}
	}
	return of
}

// catchUp compares a run's rows with what was shown of it, in order, and adds what is missing. Rows can't tell when they were
// written relative to the stream, so matching is by text. bounded is checked for each row and block, since a history
// may be large and each text is compared with all segments.
func (d *decoder) catchUp(r *run, rows []row) error {
	// Files that wait for their place are shown now: the history's texts have no lines that name them, so they would be compared in
	// the wrong place.
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
			return err // the cost of each row grows with the number of parts
		}
		switch string(w.role) {
		case "assistant":
			if err := d.assistantRow(r, &at, &w); err != nil {
				return err
			}
		case "toolResult":
			// A tool's result in a history has the form of the last frame of its call.
			a := agentData{call: w.call, name: w.name, phase: []byte("result"), result: w.raw, isError: w.isError}
			if err := d.tool(r, &a); err != nil {
				return err
			}
		}
	}
	return nil
}

// assistantRow compares the blocks of an assistant's row with what was shown. Blocks of unknown kinds are ignored.
func (d *decoder) assistantRow(r *run, at *walk, w *row) error {
	c := cursor{b: w.content}
	if !c.enter('[') {
		return nil
	}
	// All reasoning of a row is one text, so it is shown at the row's first block of it.
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

// warning is the end of the key of a row in which the gateway reports that the run failed. The model's text follows after a
// blank line.
const warning = ":terminal-error"

// text returns the model's part of a text block in the row.
func (w *row) text(text string) string {
	if strings.HasSuffix(string(w.key), warning) {
		_, text, _ = strings.Cut(text, event.JoinBlank)
	}
	return text
}

// thoughtOf returns the reasoning in a row. Its blocks are joined, because the gateway streams them as one.
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

// unread returns the streamed reasoning that none of the rows repeats literally.
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

// thought completes the reasoning that a row repeats, or shows it if it was not streamed. A gateway may store reasoning in
// other words than it streams. So while there is streamed reasoning that no row repeats, the row's is taken for it and not
// shown again.
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

// matchText finds a row's text among the visible segments and completes its segment. A text after all segments becomes a
// segment of its own. A text between two segments is appended to the earlier one, as in final frames, or put at the beginning
// of the later one if a tool call separates it from the earlier. A text before all segments is put before the first.
func (d *decoder) matchText(r *run, w *walk, text string) {
	// The marker says that the history cut the text; it isn't the model's.
	screenedText := screenWhole(strings.TrimSuffix(text, truncated))
	text = screenedText.visible
	var of tight
	if of.add(text); of.N == 0 {
		d.addMedia(r, screenedText)
		return
	}
	for i, s := range w.segments {
		if end, ok := s.endIn(text); ok {
			s.Buffered = "" // the row's text contains it, screened
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
		// The place is known only when a later segment matches.
		w.missing = append(w.missing, text)
	}
	d.addMedia(r, screenedText)
}

// walk is the position in the visible segments while the rows of a history are compared with them. It moves forward
// only, since rows and segments have the same order.
type walk struct {
	segments []*segment // the segments after the position
	before   *segment   // the segment before the position, or nil
	tool     bool       // a tool was called after that segment
	missing  []string   // texts to put before the next segment that matches
	thoughts []*segment // reasoning that no row repeats
}

// pass moves the position behind a segment, which is at index i of those that remain.
func (w *walk) pass(s *segment, i int) {
	w.before, w.tool, w.missing, w.segments = s, false, nil, w.segments[i+1:]
}

// readText is a text of a history that is visible, without the text that follows it in its segment.
type readText struct {
	tight
	Part string `json:"part,omitempty"` // of the segment
}

// markRead records that a text of a history is visible, so that the next history doesn't add it again.
func (r *run) markRead(of tight, s *segment) {
	if _, ok := r.wasRead(of); !ok {
		r.Read = append(r.Read, readText{of, s.Part})
	}
}

// wasRead returns the part that shows a text of an earlier history.
func (r *run) wasRead(of tight) (part string, ok bool) {
	for _, k := range r.Read {
		if k.tight == of {
			return k.Part, true
		}
	}
	return "", false
}

// endIn reports whether text begins with the segment's text, and the offset at which it ends.
func (s *segment) endIn(text string) (end int, ok bool) {
	if s.Visible.begins(text) {
		return int(s.Visible.Len()), true
	}
	return s.Tight.begins(text)
}

// unnamed returns the segment that a history or a preamble showed before the gateway's own frame, which has its item id. It is
// nil if there is none with that text.
func (r *run) unnamed(text string) *segment {
	for _, s := range r.Texts {
		isFromHistory := strings.HasPrefix(s.Part, historyPrefix) || strings.HasPrefix(s.Part, preamblePrefix)
		if isFromHistory && s.Item == "" && s.Tight.is(text) {
			return s
		}
	}
	return nil
}

// historyBlock is a block of a row's content. text is that of a text or of reasoning. id, name and args are those of
// a tool call.
type historyBlock struct {
	kind, id, name []byte
	args           []byte // as they stand
	text           string
}

// readBlock decodes a block. Anything but an object is an empty block.
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
