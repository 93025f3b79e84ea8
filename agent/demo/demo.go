package demo

import (
	"context"
	"strings"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

// Config is the configuration of an [Agent].
type Config struct {
	// Speed is a factor of the default pace of about 15 words a second. 0 means as fast as possible.
	Speed float64
	// Clock returns the time for questions about dates. If it is nil, it is [time.Now].
	Clock func() time.Time
}

// Agent is the demo agent. It stores nothing between turns, so any number of turns may run at the same time.
type Agent struct{ cfg Config }

var _ agent.Agent = (*Agent)(nil)

// New returns a demo agent. It can't fail, since every configuration is valid.
func New(cfg Config) *Agent {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	return &Agent{cfg}
}

// Kind returns the kind demo. Its only option is the pace; it needs no target, since it has no upstream.
func Kind() agent.Kind {
	return agent.Kind{
		Name:    "demo",
		Summary: "built in, needs no model or key: shows what an agent can do, and answers questions that can be computed",
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

// question is the input of a skill. A skill only reads it.
type question struct {
	text    string // of the message, without the words that selected the skill and the pace
	history []agent.Message
	parts   []event.Part
	time    time.Time
}

// skill answers a question on a stage. After an error the methods of the stage do nothing, so a skill checks
// stage.err only in long loops and before work that takes time. Its statements must be computed, and must not
// depend on the pace.
type skill func(s *stage, q question)

// Run implements [agent.Agent]. A message that starts with "slow" runs the skill of the rest of its text at a
// sixth of the pace.
func (a *Agent) Run(ctx context.Context, in agent.Input, emitter *agent.Emitter) error {
	s := &stage{ctx: ctx, emitter: emitter, speed: a.cfg.Speed}
	q := question{text: strings.TrimSpace(in.Message.Text), history: in.History, parts: in.Message.Parts, time: a.cfg.Clock()}
	if argument, ok := command(q.text, "slow"); ok {
		q.text = argument
		s.speed /= slowness
	}
	s.do(emitter.Model("demo"))
	choose(&q)(s, q)
	return s.err
}

// slowness divides the pace if a message starts with "slow", to leave time to stop the answer or reload the
// page. An answer of a few seconds then takes half a minute.
const slowness = 6

// commands are the first words of a message that select a skill, in the order in which the help lists them. The
// list is set once, by init.
var commands []struct {
	word, help string
	run        skill
}

func init() {
	// A declaration with the value would be an initialization cycle, since help reads the list.
	commands = []struct {
		word, help string
		run        skill
	}{
		{"help", "this answer", help},
		{"status", "status lines, each of which replaces the previous one", statuses},
		{"tools", "several tools at once, one of which fails", tools},
		{"ask", "a question that waits for your approval", approval},
		{"long", "a long answer; `long 5000` gives about that many words", longAnswer},
		{"error", "an answer that fails half-way", failure},
		{"count", "`count to 12`, `count from 5 to 1`", count},
	}
}

// choose returns the skill for a question, and removes the command word from its text. The order of the cases
// matters: code may contain a date, a question about a date may look like a subtraction, and any text may
// contain a number. words is last because it accepts everything.
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
	case q.text == "?", greeting.MatchString(q.text):
		return help
	case len(blocks(q.text)) > 0:
		return code
	case askedRecall.MatchString(q.text):
		return recall
	case askedLetters.MatchString(q.text):
		return letters
	case askedClock.MatchString(q.text), len(dates(q.text)) > 0:
		return calendar
	case findExpression(q.text) != "":
		return arithmetic
	}
	return words
}

// command reports whether the text starts with the word, in upper or lower case, and returns the text after it.
// The word must be followed by white space, punctuation or the end: "counting" isn't the command count.
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
