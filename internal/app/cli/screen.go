// What chat draws while an answer grows: the parts of a message as lines of a terminal.

package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/app/cli/console"
	"github.com/leat-dev/leat/transcript"
)

// screen draws a conversation on an output that can only grow, such as a scrolling terminal or a file. It is called
// with the whole transcript after each change, compares it with what it has drawn, and writes the difference.
//
// Added text is appended. A status overwrites the previous one while it is the last line. Text further up that was
// replaced is written again at the end, marked as a replacement, because a terminal can't be changed above its last
// line. Parts that grow at the same time take turns: each change of the part begins a paragraph. A screen must not be
// used concurrently.
type screen struct {
	w     io.Writer
	t     terminal
	width int // columns

	// The fields below are the state of the screen. Keys are ids of messages, parts and turns, joined by slashes.
	parts       map[string]*drawnPart // by message and part
	finished    map[string]bool       // messages and turns that are drawn completely
	last        string                // key of the part that was drawn last
	atLineStart bool                  // the cursor is at the beginning of a line
	hasOutput   bool                  // the output is not empty
}

// drawnPart is what the screen shows of a part.
type drawnPart struct {
	head bool
	// texts are the drawn texts of the part's fields, in the order of transcript.Fields: text, input, output, errors.
	texts  [4]string
	isDone bool
	line   string // the status on the last line
}

// newScreen returns a screen for an output of width columns. t says whether it is a terminal, and whether it shows
// colours.
func newScreen(w io.Writer, t terminal, width int) *screen {
	return &screen{w: w, t: t, width: width, parts: map[string]*drawnPart{}, finished: map[string]bool{}, atLineStart: true}
}

// draw updates the screen to the current transcript. It skips the messages in skip, which the user has typed and can
// see.
//
// Messages and turns that can't change any more are noted in finished, so that a long conversation isn't compared
// again with each change. A message of an agent is finished when it is final and its turn has ended, since the turn
// could still retract text.
func (s *screen) draw(t *transcript.Transcript, skip map[string]bool) {
	for _, m := range t.Messages {
		if s.finished[m.ID] || skip[m.ID] {
			continue
		}
		// Messages of users and of the system arrive complete and never change, so they are drawn once.
		if m.Role == event.User || m.Role == event.System {
			s.begin(m.ID)
			s.write(s.t.style(bold, "› ") + console.Clean(m.Visible()) + "\n")
			s.finished[m.ID] = true
			continue
		}
		for _, p := range m.Parts {
			s.part(m.ID+"/"+p.ID, p)
		}
		s.finished[m.ID] = m.Final && (m.Turn == "" || t.Turn(m.Turn) == nil || !t.Turn(m.Turn).Unfinished())
	}
	for _, turn := range t.Turns {
		if !turn.Independent() || s.finished[turn.ID] {
			continue
		}
		for _, r := range turn.Requests {
			s.request(turn.ID+"/"+r.ID, r)
		}
		if turn.State == transcript.TurnEnded {
			s.finished[turn.ID] = true
			s.end(turn)
		}
	}
}

// part draws the change of one part. key identifies the part among all messages. Media and data are drawn once, as
// soon as they have content; of data only the beginning is shown.
func (s *screen) part(key string, p *transcript.Part) {
	d := s.parts[key]
	if d == nil {
		d = &drawnPart{}
		s.parts[key] = d
	}
	if d.isDone {
		return
	}
	switch p.Kind {
	case event.KindText:
		s.text(key, d, p, event.Text, "", "")
	case event.KindReasoning:
		s.text(key, d, p, event.Text, dim, "")
	case event.KindStatus:
		s.status(key, d, p)
	case event.KindTool:
		s.tool(key, d, p)
	case event.KindMedia:
		if p.Media != nil && !d.head {
			d.head = true
			s.begin(key)
			s.write(s.t.style(cyan, "▣ ") + console.Clean(strings.TrimSpace(p.Media.Name+" "+p.Media.MIME+" "+console.Clip(p.Media.URL, 200))) + "\n")
		}
	case event.KindData:
		if len(p.Data) > 0 && !d.head {
			d.head = true
			s.begin(key)
			s.write(s.t.style(dim, console.Clean(console.Clip(string(p.Data), 2000))) + "\n")
		}
	}
	// Text can be retracted after its end, so only tools are ever finished.
	d.isDone = p.Final && p.Kind == event.KindTool
}

// text draws the text that was added to a field, or all of it if it was replaced. Each line begins with indent.
//
// The common case must be fast, because draw compares every part of a running turn each time: a field whose length
// has not changed is skipped without reading its text. If the new text doesn't extend the drawn one, the agent has
// replaced or retracted it.
func (s *screen) text(key string, d *drawnPart, p *transcript.Part, f event.Field, style, indent string) {
	i := slices.Index(transcript.Fields[:], f)
	if p.Len(f) == len(d.texts[i]) && (p.Len(f) == 0 || s.last == key && !p.Final) {
		return // most parts have not changed; a replaced text of equal length is drawn at the end of its part
	}
	old, current := d.texts[i], p.Text(f)
	if old == current {
		return
	}
	d.texts[i] = current
	added, extends := strings.CutPrefix(current, old)
	switch {
	case !extends && current == "":
		s.begin(key)
		s.endLine()
		s.write(s.t.style(dim, "(retracted)") + "\n")
		return
	case !extends:
		s.last = "" // so that begin starts a new paragraph
		s.begin(key)
		s.write(s.t.style(dim, "(replaced by) "))
		added = current
	}
	s.begin(key)
	added = console.Clean(added)
	if indent == "" {
		s.write(s.t.style(style, added))
		return
	}
	for line := range strings.Lines(added) {
		if s.atLineStart {
			s.write(s.t.style(dim, indent))
		}
		text, end := strings.CutSuffix(line, "\n")
		s.write(s.t.style(style, text))
		if end {
			s.write("\n")
		}
	}
}

// status draws a line that the next status overwrites. Without colours, which means without control sequences, each
// status is a separate line.
func (s *screen) status(key string, d *drawnPart, p *transcript.Part) {
	if p.Text(event.Text) == d.texts[0] {
		return
	}
	d.texts[0] = p.Text(event.Text)
	line := console.Clip(strings.Join(strings.Fields(console.Clean(d.texts[0])), " "), max(s.width-3, 10))
	if s.last == key && s.t.colour && d.line != "" {
		s.write("\r\x1b[K")
		s.atLineStart = true
	} else {
		s.begin(key)
	}
	d.line = line
	if line != "" {
		s.write(s.t.style(yellow, "◦ "+line))
		if !s.t.colour {
			s.write("\n")
		}
	}
}

// tool draws a tool call: its name, its arguments when they are complete, its output and errors with a bar at the
// left, and its result. If other parts were drawn in between, the name is repeated with an ellipsis, so that output
// is never below the wrong name.
func (s *screen) tool(key string, d *drawnPart, p *transcript.Part) {
	if s.last != key && (!d.head || p.Len(event.Output) != len(d.texts[2]) || p.Len(event.Stderr) != len(d.texts[3]) || p.Final) {
		s.begin(key)
		suffix := ""
		if d.head {
			suffix = " …"
		}
		s.write(s.t.style(cyan, "⚙ "+console.Clean(p.Name)+suffix))
		if !d.head && p.Title != "" {
			s.write(" " + console.Clean(console.Clip(p.Title, 120)))
		}
		s.write("\n")
		d.head = true
	}
	// Arguments arrive in small pieces of JSON, which are unreadable while they grow. They are complete when output
	// arrives, the state changes or the tool ends.
	if d.texts[1] == "" && p.Len(event.Input) > 0 && (p.Len(event.Output) > 0 || p.Final || p.State != event.PartRunning) {
		d.texts[1] = p.Text(event.Input)
		s.begin(key)
		s.write(s.t.style(dim, "  "+console.Clip(strings.Join(strings.Fields(console.Clean(d.texts[1])), " "), 300)) + "\n")
	}
	s.text(key, d, p, event.Output, dim, "  │ ")
	s.text(key, d, p, event.Stderr, red, "  │ ")
	if !p.Final {
		return
	}
	s.begin(key)
	s.endLine()
	switch {
	case p.State == event.PartDone:
		s.write(s.t.style(green, "  ✓") + "\n")
	case p.Error != nil:
		s.write(s.t.style(red, "  ✗ "+console.Clean(p.Error.Message)) + "\n")
	default:
		s.write(s.t.style(red, "  ✗ "+console.Clean(string(p.State))) + "\n")
	}
}

// request draws the question of a waiting turn once, with the possible answers. If the agent provides no text, the
// line names what it waits for.
func (s *screen) request(key string, r *transcript.Request) {
	if s.finished[key] {
		return
	}
	s.finished[key] = true
	s.begin(key)
	// An approval without options has the two decisions of the protocol.
	options := r.Options
	if len(options) == 0 && r.Kind == event.RequestApproval {
		options = []string{string(event.Approve), string(event.Deny)}
	}
	text := console.Question(&r.Request)
	if len(options) > 0 {
		text += " [" + console.Clean(strings.Join(options, "/")) + "]"
	}
	s.write(s.t.style(bold, "? "+text) + "\n")
}

// end draws how a turn ended, unless it was completed, and makes the next part begin a new paragraph.
func (s *screen) end(turn *transcript.Turn) {
	line := ""
	switch {
	case turn.Outcome == event.Completed:
	case turn.Error != nil:
		line = s.t.style(red, fmt.Sprintf("✗ %s: %s", turn.Outcome, console.Clean(turn.Error.Message)))
	default:
		line = s.t.style(red, "✗ "+string(turn.Outcome))
	}
	s.endLine()
	if line != "" {
		s.write(line + "\n")
	}
	s.last = ""
}

// begin starts a new paragraph, with an empty line before it, unless the part with this key was drawn last.
func (s *screen) begin(key string) {
	if s.last == key {
		return
	}
	s.endLine()
	if s.hasOutput && !strings.HasPrefix(s.last, key) {
		s.write("\n")
	}
	s.last = key
}

// endLine moves the cursor to the beginning of a line, unless it is there already.
func (s *screen) endLine() {
	if !s.atLineStart {
		s.write("\n")
	}
}

// note draws a line from the program itself, such as the state of the connection. It interrupts the current part.
func (s *screen) note(text string) {
	s.endLine()
	s.write(s.t.style(dim, text) + "\n")
	s.last = ""
}

// write writes text and keeps track of whether the cursor is at the beginning of a line. The end of a style may
// follow the line feed.
func (s *screen) write(text string) {
	if text == "" {
		return
	}
	_, _ = io.WriteString(s.w, text) // a closed terminal ends the program with a signal
	s.hasOutput = true
	s.atLineStart = strings.HasSuffix(text, "\n") || strings.HasSuffix(text, "\n\x1b[0m")
}
