package openclaw

import (
	"strconv"
	"strings"

	"github.com/leat-dev/leat/event"
)

// agent decodes an agent frame: what the run says and does.
func (d *decoder) agent(p *payload) error {
	switch string(p.stream) {
	case "assistant", "thinking", "tool", "item", "command_output", "lifecycle", "run_status", "usage":
	default:
		d.Unknowns.Add("agent " + string(p.stream))
		return nil
	}
	a := &p.data
	// The rest of a lifecycle may come late, from a run that ended before this stream began.
	begins := string(p.stream) != "usage" && (string(p.stream) != "lifecycle" || string(a.phase) == "start")
	r, err := d.run(p, begins)
	if r == nil || err != nil {
		return err
	}
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

// agentData is the data of an agent frame of any stream.
type agentData struct {
	// assistant, thinking
	text, delta string
	hasText     bool
	replace     bool
	itemID      []byte // item, command_output too
	mediaURLs   []string

	phase []byte // lifecycle, run_status, tool, item, command_output

	// lifecycle
	model, errorText, disposition []byte
	reply                         string // the run's last text, with the lines that name files

	// tool, item, command_output
	call, name, title, meta, kind, status []byte
	args, partial, result                 []byte // as they stand
	isError                               bool
	output                                string
	hasOutput                             bool
	progress                              string // item

	outputTokens int64 // usage
}

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
			a.delta = c.snapshot()
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

// member gives a string of an object.
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

// keyed takes the snapshot of a segment that the gateway has named; only protocol 4 does. An empty one retracts the
// segment if it says so; else it is of a frame that brings something else.
func (d *decoder) keyed(r *run, a *agentData) error {
	d.Protocol = max(d.Protocol, protocolKeyed)
	if a.text == "" && !a.replace {
		return nil
	}
	part := keyedPrefix + string(a.itemID)
	if a.text == "" {
		for _, s := range r.Texts {
			if s.Part == part || s.Item == part {
				d.show(r, s, "")
			}
		}
		return nil
	}
	for i := len(r.Texts) - 1; i >= 0; i-- {
		s := r.Texts[i]
		if s.Part != part && s.Item != part {
			continue
		}
		switch {
		case a.replace && s.IsOver && s.Visible.Len() > 0 && !s.Visible.begins(a.text):
			// The model thought before it went on. The gateway reuses the name, but its history keeps both texts.
			key := part + "+" + strconv.Itoa(len(r.Texts))
			if err := event.CheckID("itemId", key); err != nil {
				return err
			}
			next := begin(&r.Texts, event.KindText, key)
			next.Item = part
			d.show(r, next, a.text)
		case s.Part == part || a.replace || int64(len(a.text)) > s.Visible.Len():
			s.IsOver = false
			d.show(r, s, a.text)
		} // else it came whole from elsewhere; a snapshot that is older takes nothing of it back
		return nil
	}
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

// protocolKeyed is the first protocol whose gateway takes control syntax out of the text itself.
const protocolKeyed = 4

// unkeyed takes the snapshot of a segment without a name.
func (d *decoder) unkeyed(r *run, a *agentData) {
	text := screened{visible: a.text}
	if d.Protocol < protocolKeyed {
		text = screen(a.text)
	}
	s := r.text()
	goesOn := s != nil && s.Visible.begins(text.visible)
	switch {
	case a.replace && s != nil:
		s.Buffered = text.buffered
		d.show(r, s, text.visible)
		d.addMedia(r, text)
		return
	case a.delta == "" && s != nil:
		// The frame that brings mediaUrls repeats the segment's text, or what is left of it without its media.
		if !goesOn {
			return
		}
	case !goesOn || a.text == a.delta && (s.Visible.Len() > 0 || s.Buffered != ""):
		d.settle(r, s, false)
		s = begin(&r.Texts, event.KindText, ordinal("text:", r.Texts))
	}
	d.showBetween(r, s, text)
	s.Buffered, s.IsOver = text.buffered, false
}

// thinking takes a snapshot of the model's reasoning, which starts anew with each of its messages. It ends the text before it.
func (d *decoder) thinking(r *run, a *agentData) {
	s := last(r.Thoughts)
	if !a.hasText {
		return
	}
	if t := r.text(); t != nil && t.Visible.Len() > 0 && d.Protocol >= protocolKeyed {
		t.IsOver = true
	}
	if s == nil || !a.replace && (!s.Visible.begins(a.text) || a.text == a.delta && s.Visible.Len() > 0) {
		if a.text == "" {
			return
		}
		s = begin(&r.Thoughts, event.KindReasoning, ordinal("thinking:", r.Thoughts))
	}
	d.show(r, s, a.text)
}

// lifecycle takes the progress of the run. None of its phases is the run's end: the chat frame that follows is.
func (d *decoder) lifecycle(r *run, a *agentData) {
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
	case "end", "error":
		d.place(r, a.reply)
		r.Error = strings.TrimSpace(string(a.errorText))
	}
}

// phase tells of the run's progress, once where several frames tell the same.
func (d *decoder) phase(r *run, phase []byte) {
	if p := string(phase); p != "" && p != r.Phase {
		r.Phase = p
		d.emit(r, event.Event{Type: event.TurnUpdate, Body: &event.Body{Phase: p}})
	}
}
