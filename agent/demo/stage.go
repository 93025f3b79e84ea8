package demo

import (
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
)

// The pace at speed 1: about 15 words a second, a little more time for long ones and at the end of a sentence, so that
// it reads as if somebody spoke.
const (
	perWord     = 40 * time.Millisecond
	perLetter   = 4 * time.Millisecond
	perSentence = 160 * time.Millisecond
	perLine     = 90 * time.Millisecond // of a tool's output
	perStatus   = 500 * time.Millisecond
	toStart     = 250 * time.Millisecond
)

// stage is where a skill acts. After the first error, which it keeps, it does nothing more.
type stage struct {
	ctx     context.Context
	emitter *agent.Emitter
	speed   float64
	err     error
}

func (s *stage) do(err error) {
	if s.err == nil {
		s.err = err
	}
}

// fail ends the act with an error that readers see.
func (s *stage) fail(err error) { s.do(err) }

// pause lets time go by, less of it at a higher speed.
func (s *stage) pause(d time.Duration) {
	if s.err != nil {
		return
	}
	if s.speed > 0 {
		t := time.NewTimer(time.Duration(float64(d) / s.speed))
		defer t.Stop()
		select {
		case <-t.C:
		case <-s.ctx.Done():
		}
	}
	s.do(context.Cause(s.ctx))
}

// stream says a text word by word.
func (s *stage) stream(text string, say func(string) error) {
	for text != "" && s.err == nil {
		word := firstWord(text)
		text = text[len(word):]
		s.do(say(word))
		d := perWord + time.Duration(len(word))*perLetter
		if bare := strings.TrimRightFunc(word, unicode.IsSpace); strings.HasSuffix(bare, ".") || strings.HasSuffix(bare, ":") {
			d += perSentence
		}
		s.pause(d)
	}
}

// firstWord returns the first word with the white space around it.
func firstWord(text string) string {
	inWord, inSpace := false, false
	for i, r := range text {
		space := unicode.IsSpace(r)
		if inSpace && !space {
			return text[:i]
		}
		inWord = inWord || !space
		inSpace = inWord && space
	}
	return text
}

// think streams reasoning.
func (s *stage) think(text string) {
	s.pause(toStart)
	s.stream(text, s.emitter.Reasoning)
}

// say streams a piece of the answer, Markdown.
func (s *stage) say(text string) { s.stream(text, s.emitter.Text) }

// status shows what goes on, in place of the status before.
func (s *stage) status(text string) {
	if s.err != nil {
		return
	}
	s.do(s.emitter.Status(text, dialect.Replace))
	s.pause(perStatus)
}

// tool is a call that is shown.
type tool struct {
	s *stage
	t *agent.Tool
}

// call begins a call of a tool, its input streamed as models stream it.
func (s *stage) call(name, title string, input any) *tool {
	t := &tool{s: s}
	if s.err != nil {
		return t
	}
	b, err := json.Marshal(input)
	if err != nil {
		s.do(err)
		return t
	}
	t.t, err = s.emitter.Tool(name, "")
	s.do(err)
	t.do(func() error { return t.t.Title(title) })
	s.stream(string(b), t.input)
	return t
}

func (t *tool) do(f func() error) {
	if t.s.err == nil {
		t.s.do(f())
	}
}

func (t *tool) input(text string) error { return t.t.Input(text) }

// print streams a line of output.
func (t *tool) print(line string) {
	t.do(func() error { return t.t.Output(line + "\n") })
	t.s.pause(perLine)
}

// complain streams a line beside the output.
func (t *tool) complain(line string) {
	t.do(func() error { return t.t.Stderr(line + "\n") })
	t.s.pause(perLine)
}

func (t *tool) end()               { t.do(func() error { return t.t.Done() }) }
func (t *tool) fail(reason string) { t.do(func() error { return t.t.Fail(reason) }) }
