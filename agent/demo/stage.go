package demo

import (
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/internal/base/retry"
)

// The pace at speed 1: about 15 words a second, with more time for long words and after a sentence, so that it looks like a model's.
const (
	// The times of one unit of output each. perWord and perLetter are added up for a word.
	perWord     = 40 * time.Millisecond
	perLetter   = 4 * time.Millisecond
	perSentence = 160 * time.Millisecond
	perLine     = 90 * time.Millisecond // of a tool's output
	perStatus   = 500 * time.Millisecond
	toStart     = 250 * time.Millisecond
)

// stage writes the output of a skill at the agent's pace. It keeps the first error in err, and its methods then
// do nothing, so a skill needs no error handling. It is used by one goroutine.
type stage struct {
	ctx     context.Context
	emitter *agent.Emitter
	speed   float64
	err     error
}

// do makes err the result of the turn, unless there is an error already. Viewers see the message of an [agent.Error].
func (s *stage) do(err error) {
	if s.err == nil {
		s.err = err
	}
}

// pause waits for d divided by the speed, or until the turn ends. At speed 0 it doesn't wait, but still checks
// whether the turn has ended, so that a long answer can be stopped.
func (s *stage) pause(d time.Duration) {
	if s.err != nil {
		return
	}
	if s.speed > 0 {
		s.do(retry.Sleep(s.ctx, time.Duration(float64(d)/s.speed)))
	}
	s.do(context.Cause(s.ctx))
}

// stream passes the words of a text to say, one by one, with a pause after each. The pauses depend only on the
// text, so a turn takes the same time each time.
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

// firstWord returns the first word of a text with the white space before and after it. White space is never
// split from its word, so the pieces of a text joined are the text again.
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

// think streams reasoning, after a pause like that of a model before its first word.
func (s *stage) think(text string) {
	s.pause(toStart)
	s.stream(text, s.emitter.Reasoning)
}

// say streams a piece of the answer, Markdown.
func (s *stage) say(text string) { s.stream(text, s.emitter.Text) }

// status replaces the previous status, and pauses so that a viewer can read it.
func (s *stage) status(text string) {
	if s.err != nil {
		return
	}
	s.do(s.emitter.Status(text, dialect.Replace))
	s.pause(perStatus)
}

// tool is a visible tool call. Its methods do nothing after an error of the stage. t is nil if the call itself
// couldn't be emitted.
type tool struct {
	s *stage
	t *agent.Tool
}

// call starts a tool call and streams its input as JSON, as models do. The skill then prints output and must
// call end or fail.
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
	s.stream(string(b), t.t.Input)
	return t
}

// do calls f unless the stage has an error, and records the error of f.
func (t *tool) do(f func() error) {
	if t.s.err == nil {
		t.s.do(f())
	}
}

// print streams a line of output.
func (t *tool) print(line string) {
	t.do(func() error { return t.t.Output(line + "\n") })
	t.s.pause(perLine)
}

// complain streams a line of standard error.
func (t *tool) complain(line string) {
	t.do(func() error { return t.t.Stderr(line + "\n") })
	t.s.pause(perLine)
}

func (t *tool) end()               { t.do(func() error { return t.t.Done() }) }
func (t *tool) fail(reason string) { t.do(func() error { return t.t.Fail(reason) }) }
