package openclaw

import (
	"strconv"
	"strings"

	"github.com/leat-dev/leat/event"
)

// agent decodes an agent frame, which has the content of a run. A frame whose seq is not above the run's last one is a
// repetition and ignored.
func (d *decoder) agent(p *payload) error {
	switch string(p.stream) {
	case "assistant", "thinking", "tool", "item", "command_output", "lifecycle", "run_status", "usage":
	default:
		d.Unknowns.Add("agent " + string(p.stream))
		return nil
	}
	a := &p.data
	// The last lifecycle frames of a run may arrive on a connection that began after the run's end. They must not start it again.
	begins := string(p.stream) != "usage" && (string(p.stream) != "lifecycle" || string(a.phase) == "start")
	// A frame of a session that another conversation shows has no run here.
	r, err := d.run(p, begins)
	if r == nil || err != nil {
		return err
	}
	// The seq has gaps, because a connection doesn't get every frame of a run. Only a number that isn't larger is a repetition.
	if p.seq > 0 {
		if p.seq <= r.Seq {
			return nil
		}
		r.Seq = p.seq
	}
	switch string(p.stream) {
	case "assistant":
		return d.assistant(r, a)
	case "thinking":
		d.thinking(r, a)
	case "tool":
		return d.tool(r, a)
	case "item":
		return d.item(r, a)
	case "command_output":
		return d.commandOutput(r, a)
	case "lifecycle":
		d.lifecycle(r, a)
	case "run_status":
		d.phase(r, a.phase)
	case "usage":
		r.Output = max(r.Output, a.outputTokens)
	}
	return nil
}

// agentData holds the fields of an agent frame's data. Which ones are set depends on the stream, as noted. Slices
// point into the frame, so what is stored is copied.
type agentData struct {
	// assistant, thinking
	text string
	// delta is what the frame adds to text. A delta that equals the text marks the beginning of a segment.
	delta []byte
	// hasText and hasOutput distinguish an empty string from a missing one: an empty snapshot retracts what was
	// visible.
	hasText bool
	// replace means that text isn't a continuation: the gateway has changed or retracted the segment.
	replace   bool
	itemID    []byte // item, command_output too
	mediaURLs []string

	phase []byte // lifecycle, run_status, tool, item, command_output

	// lifecycle
	model, errorText, disposition []byte
	reply                         string // the run's last text, with the lines that name files

	// tool, item, command_output
	call, name, title, meta, kind, status []byte
	args, partial, result                 []byte // undecoded JSON
	isError                               bool
	output                                string
	hasOutput                             bool
	progress                              string // item

	outputTokens int64 // usage
}

// parse decodes the data object. Fields that no stream needs are skipped.
func (a *agentData) parse(c *cursor) {
	if !c.enter('{') {
		return
	}
	var key []byte
	for c.next(&key) {
		switch string(key) {
		case "text":
			a.hasText = c.peek() == '"'
			a.text = c.snapshot()
		case "delta":
			a.delta = unquote(c.prefix())
		case "replace":
			a.replace = c.bool()
		case "itemId":
			a.itemID = c.bytes()
		case "mediaUrls":
			if c.enter('[') {
				for c.hasNext(']') {
					a.mediaURLs = append(a.mediaURLs, c.str())
				}
			}
		case "phase":
			a.phase = c.bytes()
		case "model":
			a.model = c.bytes()
		case "error":
			a.errorText = c.bytes()
		case "terminalReply":
			reply := c.raw()
			a.disposition, a.reply = member(reply, "disposition"), string(member(reply, "text"))
		case "toolCallId":
			a.call = c.bytes()
		case "name":
			a.name = c.bytes()
		case "title":
			a.title = c.bytes()
		case "meta":
			a.meta = c.bytes()
		case "kind":
			a.kind = c.bytes()
		case "status":
			a.status = c.bytes()
		case "args":
			a.args = c.raw()
		case "partialResult":
			a.partial = c.raw()
		case "result":
			a.result = c.raw()
		case "isError":
			a.isError = c.bool()
		case "output":
			a.hasOutput = c.peek() == '"'
			a.output = c.snapshot()
		case "progressText":
			a.progress = c.snapshot()
		case "outputTokens":
			a.outputTokens = c.int()
		default:
			c.skip()
		}
	}
}

// member returns the string with that name in a JSON object, or nil.
func member(object []byte, name string) []byte {
	c := cursor{b: object}
	if len(object) == 0 || !c.enter('{') {
		return nil
	}
	var key, value []byte
	for c.next(&key) {
		if string(key) == name {
			value = c.bytes()
		} else {
			c.skip()
		}
	}
	return value
}

// assistant decodes a text snapshot and the files that it names. Protocol 3 shows files at once. Protocol 4 names them after
// the text in which they belong, so they wait for the end of the run.
func (d *decoder) assistant(r *run, a *agentData) error {
	switch {
	case !a.hasText:
	case len(a.itemID) > 0:
		if err := d.keyed(r, a); err != nil {
			return err
		}
	default:
		d.unkeyed(r, a)
	}
	for _, url := range a.mediaURLs {
		if d.Protocol < protocolKeyed {
			d.media(r, url)
		} else {
			d.deferFile(r, url)
		}
	}
	return nil
}

// keyed decodes a snapshot of a segment with an item id, which only protocol 4 has. An empty text retracts the segment if
// replace is set; otherwise the frame has no text at all. It tells the protocol too, for a connection whose handshake
// wasn't decoded.
func (d *decoder) keyed(r *run, a *agentData) error {
	d.Protocol = max(d.Protocol, protocolKeyed)
	if a.text == "" && !a.replace {
		return nil
	}
	if a.text == "" {
		for _, s := range r.Texts {
			if isKeyed(s.Part, a.itemID) || isKeyed(s.Item, a.itemID) {
				d.show(r, s, "")
			}
		}
		return nil
	}
	// The newest segment with the id is the one that grows: after a reuse of the id, older ones are complete.
	for i := len(r.Texts) - 1; i >= 0; i-- {
		s := r.Texts[i]
		isPart := isKeyed(s.Part, a.itemID)
		if !isPart && !isKeyed(s.Item, a.itemID) {
			continue
		}
		switch {
		case a.replace && s.IsOver && s.Visible.Len() > 0 && !s.Visible.begins(a.text):
			// The model reasoned in between. The gateway reuses the item id, but its history has both texts.
			part := keyedPrefix + string(a.itemID)
			key := part + "+" + strconv.Itoa(len(r.Texts))
			if err := event.CheckID("itemId", key); err != nil {
				return err
			}
			next := begin(&r.Texts, event.KindText, key)
			next.Item = part
			d.show(r, next, a.text)
		case isPart || a.replace || int64(len(a.text)) > s.Visible.Len():
			s.IsOver = false
			d.show(r, s, a.text)
		} // otherwise a history has already shown the whole text, and an older snapshot must not shorten it
		return nil
	}
	part := keyedPrefix + string(a.itemID)
	// A history or a preamble may have shown the segment before its first frame arrived. It gets its item id now.
	if s := r.unnamed(a.text); s != nil {
		s.Item = part
		return nil
	}
	if err := event.CheckID("itemId", part); err != nil {
		return err
	}
	d.show(r, begin(&r.Texts, event.KindText, part), a.text)
	return nil
}

// isKeyed reports whether a key is that of a segment with an item id. It compares without making a string for each
// segment, since it runs for each frame and segment.
func isKeyed(key string, item []byte) bool {
	return strings.HasPrefix(key, keyedPrefix) && key[len(keyedPrefix):] == string(item)
}

// protocolKeyed is the first protocol whose gateway itself removes control syntax from the text and names segments.
const protocolKeyed = 4

// unkeyed decodes a snapshot of a segment without an item id. It continues the last segment if it begins with that segment's
// text, and otherwise starts a new one.
func (d *decoder) unkeyed(r *run, a *agentData) {
	text := screened{visible: a.text}
	if d.Protocol < protocolKeyed {
		text = screen(a.text)
	}
	s := r.text()
	goesOn := s != nil && s.Visible.begins(text.visible)
	switch {
	// replace means that the gateway has retracted or changed the segment, so nothing is compared.
	case a.replace && s != nil:
		s.Buffered = text.buffered
		d.show(r, s, text.visible)
		d.addMedia(r, text)
		return
	case len(a.delta) == 0 && s != nil:
		// A frame with mediaUrls repeats the segment's text, with or without the lines that name files.
		if !goesOn {
			return
		}
	case !goesOn || a.text == string(a.delta) && (s.Visible.Len() > 0 || s.Buffered != ""):
		d.finishText(r, s, false)
		s = begin(&r.Texts, event.KindText, ordinal("text:", r.Texts))
	}
	d.showBetween(r, s, text)
	s.Buffered, s.IsOver = text.buffered, false
}

// thinking decodes a snapshot of the model's reasoning. Each model message starts a new one, and ends the text before
// it. Reasoning has no item ids, so its segments are found by comparison in both protocols.
func (d *decoder) thinking(r *run, a *agentData) {
	s := last(r.Thoughts)
	if !a.hasText {
		return
	}
	// A text after the reasoning is another segment, even if it has the same item id.
	if t := r.text(); t != nil && t.Visible.Len() > 0 && d.Protocol >= protocolKeyed {
		t.IsOver = true
	}
	if s == nil || !a.replace && (!s.Visible.begins(a.text) || a.text == string(a.delta) && s.Visible.Len() > 0) {
		if a.text == "" {
			return
		}
		s = begin(&r.Thoughts, event.KindReasoning, ordinal("thinking:", r.Thoughts))
	}
	d.show(r, s, a.text)
}

// lifecycle decodes the progress of a run. No lifecycle frame ends the run; the chat frame that follows does. The frame "end"
// has the last text with the lines that name files, which shows where they belong.
func (d *decoder) lifecycle(r *run, a *agentData) {
	// The disposition says what became of the reply, for instance that nothing was sent. The end of the run needs it.
	if len(a.disposition) > 0 {
		r.Disposition = string(a.disposition)
	}
	switch string(a.phase) {
	case "model":
		if m := string(a.model); m != "" && m != r.Model {
			r.Model = m
			d.emit(r, event.Event{Type: event.TurnUpdate, Body: &event.Body{Model: m}})
		}
	case "start", "finishing", "fallback_step":
		d.phase(r, a.phase)
	// Files get their places before the chat frame ends the run, because nothing can be changed after that.
	case "end", "error":
		d.place(r, a.reply)
		r.Error = strings.TrimSpace(string(a.errorText))
	}
}

// phase emits a change of the run's phase. Several frames report the same phase.
func (d *decoder) phase(r *run, phase []byte) {
	if p := string(phase); p != "" && p != r.Phase {
		r.Phase = p
		d.emit(r, event.Event{Type: event.TurnUpdate, Body: &event.Body{Phase: p}})
	}
}
