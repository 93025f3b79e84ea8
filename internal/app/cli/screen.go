package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// screen draws a conversation on an output that can only grow, like a terminal that scrolls: what was added to a text is
// written behind it, a status takes the place of the one before while it is the last line, and what was replaced further
// up is written again below. It is used from one goroutine at a time.
type screen struct {
	w     io.Writer
	t     terminal
	width int // columns

	parts map[string]*drawn // by message and part
	whole map[string]bool   // messages and turns that were drawn to their end
	last  string            // key of what was drawn last
	fresh bool              // the cursor stands at the beginning of a line
	any   bool              // something was drawn
}

// drawn is what readers have of a part.
type drawn struct {
	head  bool
	texts [4]string
	done  bool
	line  string // the status that stands on the last line
}

func newScreen(w io.Writer, t terminal, width int) *screen {
	return &screen{w: w, t: t, width: width, parts: map[string]*drawn{}, whole: map[string]bool{}, fresh: true}
}

// draw brings the screen up to what the transcript says now. skip names messages that the person has before their eyes.
func (s *screen) draw(t *transcript.Transcript, skip map[string]bool) {
	for _, m := range t.Messages {
		if s.whole[m.ID] || skip[m.ID] {
			continue
		}
		if m.Role == event.User || m.Role == event.System {
			s.begin(m.ID)
			s.write(s.t.style(bold, "› ") + clean(m.Visible()) + "\n")
			s.whole[m.ID] = true
			continue
		}
		for _, p := range m.Parts {
			s.part(m.ID+"/"+p.ID, p)
		}
		s.whole[m.ID] = m.Ended && (m.Turn == "" || t.Turn(m.Turn) == nil || !t.Turn(m.Turn).Unfinished())
	}
	for _, turn := range t.Turns {
		if !turn.Independent() || s.whole[turn.ID] {
			continue
		}
		for _, r := range turn.Requests {
			s.request(turn.ID+"/"+r.ID, r)
		}
		if turn.State == transcript.Ended {
			s.whole[turn.ID] = true
			s.end(turn)
		}
	}
}

func (s *screen) part(key string, p *transcript.Part) {
	d := s.parts[key]
	if d == nil {
		d = &drawn{}
		s.parts[key] = d
	}
	if d.done {
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
			s.write(s.t.style(cyan, "▣ ") + clean(strings.TrimSpace(p.Media.Name+" "+p.Media.MIME+" "+clip(p.Media.URL, 200))) + "\n")
		}
	case event.KindData:
		if len(p.Data) > 0 && !d.head {
			d.head = true
			s.begin(key)
			s.write(s.t.style(dim, clean(clip(string(p.Data), 2000))) + "\n")
		}
	}
	// A retract may still come after the end of a text, so that only tools are ever done with.
	d.done = p.Ended && p.Kind == event.KindTool
}

// text draws what was added to a field, or all of it where it was replaced. indent stands before each line.
func (s *screen) text(key string, d *drawn, p *transcript.Part, f event.Field, style, indent string) {
	i := 0
	for n, field := range transcript.Fields {
		if field == f {
			i = n
		}
	}
	if p.Len(f) == len(d.texts[i]) && (p.Len(f) == 0 || s.last == key && !p.Ended) {
		return // the usual case of a part that nothing happened to; equal lengths of a replaced text are seen at its end
	}
	old, now := d.texts[i], p.Text(f)
	if old == now {
		return
	}
	d.texts[i] = now
	more, extends := strings.CutPrefix(now, old)
	switch {
	case !extends && now == "":
		s.begin(key)
		if !s.fresh {
			s.write("\n")
		}
		s.write(s.t.style(dim, "(taken back)") + "\n")
		return
	case !extends:
		s.last = "" // as of a part that was not there yet
		s.begin(key)
		s.write(s.t.style(dim, "(instead) "))
		more = now
	}
	s.begin(key)
	more = clean(more)
	if indent == "" {
		s.write(s.t.style(style, more))
		return
	}
	for line := range strings.Lines(more) {
		if s.fresh {
			s.write(s.t.style(dim, indent))
		}
		text, end := strings.CutSuffix(line, "\n")
		s.write(s.t.style(style, text))
		if end {
			s.write("\n")
		}
	}
}

// status draws a line that the next status overwrites.
func (s *screen) status(key string, d *drawn, p *transcript.Part) {
	if p.Text(event.Text) == d.texts[0] {
		return
	}
	d.texts[0] = p.Text(event.Text)
	line := clip(strings.Join(strings.Fields(clean(d.texts[0])), " "), max(s.width-3, 10))
	if s.last == key && s.t.colour && d.line != "" {
		s.write("\r\x1b[K")
		s.fresh = true
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

func (s *screen) tool(key string, d *drawn, p *transcript.Part) {
	if s.last != key && (!d.head || p.Len(event.Output) != len(d.texts[2]) || p.Len(event.Stderr) != len(d.texts[3]) || p.Ended) {
		s.begin(key)
		again := ""
		if d.head {
			again = " …"
		}
		s.write(s.t.style(cyan, "⚙ "+clean(p.Name)+again))
		if !d.head && p.Title != "" {
			s.write(" " + clean(clip(p.Title, 120)))
		}
		s.write("\n")
		d.head = true
	}
	// Arguments grow letter by letter and are of interest as a whole.
	if d.texts[1] == "" && p.Len(event.Input) > 0 && (p.Len(event.Output) > 0 || p.Ended || p.State != event.PartRunning) {
		d.texts[1] = p.Text(event.Input)
		s.begin(key)
		s.write(s.t.style(dim, "  "+clip(strings.Join(strings.Fields(clean(d.texts[1])), " "), 300)) + "\n")
	}
	s.text(key, d, p, event.Output, dim, "  │ ")
	s.text(key, d, p, event.Stderr, red, "  │ ")
	if !p.Ended {
		return
	}
	s.begin(key)
	if !s.fresh {
		s.write("\n")
	}
	switch {
	case p.State == event.PartDone:
		s.write(s.t.style(green, "  ✓") + "\n")
	case p.Error != nil:
		s.write(s.t.style(red, "  ✗ "+clean(p.Error.Message)) + "\n")
	default:
		s.write(s.t.style(red, "  ✗ "+clean(string(p.State))) + "\n")
	}
}

func (s *screen) request(key string, r *transcript.Request) {
	if s.whole[key] {
		return
	}
	s.whole[key] = true
	s.begin(key)
	options := r.Options
	if len(options) == 0 && r.Kind == event.RequestApproval {
		options = []string{string(event.Approve), string(event.Deny)}
	}
	text := clean(r.Prompt)
	if text == "" {
		text = "the agent waits for " + clean(string(r.Kind)) + " " + clean(r.Tool)
	}
	if len(options) > 0 {
		text += " [" + clean(strings.Join(options, "/")) + "]"
	}
	s.write(s.t.style(bold, "? "+text) + "\n")
}

func (s *screen) end(turn *transcript.Turn) {
	line := ""
	switch {
	case turn.Outcome == event.Completed:
	case turn.Error != nil:
		line = s.t.style(red, fmt.Sprintf("✗ %s: %s", turn.Outcome, clean(turn.Error.Message)))
	default:
		line = s.t.style(red, "✗ "+string(turn.Outcome))
	}
	if !s.fresh {
		s.write("\n")
	}
	if line != "" {
		s.write(line + "\n")
	}
	s.last = ""
}

// begin goes to where something other than what was drawn last can be drawn.
func (s *screen) begin(key string) {
	if s.last == key {
		return
	}
	if !s.fresh {
		s.write("\n")
	}
	if s.any && !strings.HasPrefix(s.last, key) {
		s.write("\n")
	}
	s.last = key
}

// note draws a line of the program's own.
func (s *screen) note(text string) {
	if !s.fresh {
		s.write("\n")
	}
	s.write(s.t.style(dim, text) + "\n")
	s.last = ""
}

func (s *screen) write(text string) {
	if text == "" {
		return
	}
	_, _ = io.WriteString(s.w, text) // a terminal that is gone ends the program by other ways
	s.any = true
	s.fresh = strings.HasSuffix(text, "\n") || strings.HasSuffix(text, "\n\x1b[0m")
}

// clean takes out what would steer the terminal: an agent's text is not to be trusted with it.
func clean(text string) string {
	bad := func(r rune) bool { return r != '\n' && r != '\t' && (unicode.IsControl(r) || r == utf8.RuneError) }
	if strings.IndexFunc(text, bad) < 0 {
		return text
	}
	return strings.Map(func(r rune) rune {
		if bad(r) {
			if r == '\r' {
				return -1
			}
			return '·'
		}
		return r
	}, text)
}

// clip shortens a text to a number of characters.
func clip(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}
