package demo

import (
	"context"
	"strings"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

// Config says how the agent behaves.
type Config struct {
	// Speed is a factor of the pace of a person who types fast; 0 is as fast as possible.
	Speed float64
	// Now is the clock that questions for dates and times are answered by; nil is the system's.
	Now func() time.Time
}

// Agent answers turns. It keeps nothing between them.
type Agent struct{ cfg Config }

var _ agent.Agent = (*Agent)(nil)

// New returns the agent.
func New(cfg Config) *Agent {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Agent{cfg}
}

// Kind is the agent as a kind.
func Kind() agent.Kind {
	return agent.Kind{
		Name:    "demo",
		Summary: "built in, needs nothing: shows all that an agent can do, and works out small things",
		Options: []agent.Option{{Name: "speed", Help: "factor of the pace; 0 is as fast as possible", Default: "1"}},
		New: func(s agent.Spec) (agent.Agent, error) {
			speed, err := s.Float("speed", 1)
			if err != nil {
				return nil, err
			}
			return New(Config{Speed: speed}), nil
		},
	}
}

// question is what a skill gets to answer.
type question struct {
	text    string // as written, without the words that chose the skill or changed the pace
	history []agent.Message
	parts   []event.Part
	time    time.Time
}

// skill answers a question on a stage. A stage that has failed ignores what it is told, so a skill looks at it only
// where it would go on for long.
type skill func(s *stage, q question)

// Run answers one turn.
func (a *Agent) Run(ctx context.Context, in agent.Input, emitter *agent.Emitter) error {
	s := &stage{ctx: ctx, emitter: emitter, speed: a.cfg.Speed}
	q := question{text: strings.TrimSpace(in.Message.Text), history: in.History, parts: in.Message.Parts, time: a.cfg.Now()}
	if argument, ok := command(q.text, "slow"); ok {
		q.text = argument
		s.speed /= slowness
	}
	s.do(emitter.Model("demo"))
	choose(&q)(s, q)
	return s.err
}

// slowness is by how much a message that begins with "slow" is answered more slowly: time enough to stop or reload.
const slowness = 6

// commands are the words that choose a skill when a message begins with them, in the order of the help.
var commands []struct {
	word, help string
	run        skill
}

func init() {
	// Filled in here since help itself reads the list.
	commands = []struct {
		word, help string
		run        skill
	}{
		{"help", "this answer", help},
		{"status", "status lines that take each other's place", statuses},
		{"tools", "several tools at once, one of which fails", tools},
		{"ask", "a question that waits for your approval", approval},
		{"long", "a long answer; `long 5000` gives about that many words", longAnswer},
		{"error", "an answer that fails half-way", failure},
		{"count", "`count to 12`, `count from 5 to 1`", count},
	}
}

// choose finds the skill that a question calls for.
func choose(q *question) skill {
	if q.text == "" && len(q.parts) == 0 {
		return help
	}
	for _, c := range commands {
		if argument, ok := command(q.text, c.word); ok && (c.word != "count" || isCount(argument)) {
			q.text = argument
			return c.run
		}
	}
	switch {
	case isGreeting(q.text):
		return help
	case len(blocks(q.text)) > 0:
		return code
	case isRecall(q.text):
		return recall
	case isLetters(q.text):
		return letters
	case isCalendar(q.text):
		return calendar
	case findExpression(q.text) != "":
		return arithmetic
	}
	return words
}

// command reports whether the text begins with the word, and returns what follows it.
func command(text, word string) (argument string, ok bool) {
	if len(text) < len(word) || !strings.EqualFold(text[:len(word)], word) {
		return "", false
	}
	argument = text[len(word):]
	if argument != "" && !strings.ContainsRune(" \t\r\n:,.!?", rune(argument[0])) {
		return "", false
	}
	return strings.TrimLeft(argument, " \t\r\n:,.!?"), true
}
