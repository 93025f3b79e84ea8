package gateway

import (
	"context"
	"log/slog"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// observer counts and times the events of a conversation's commits, so that each turn is counted once, when its end is durable. Only the
// writer's goroutine uses it.
type observer struct {
	writer *writer
	turns  map[string]*turnMetrics // that run here
}

// phaseRetrying is what agents say while they wait to call again.
const phaseRetrying = "retrying"

// turnMetrics measures a running turn.
type turnMetrics struct {
	agent string
	began time.Time
	text  bool // its first text was shown
	trace TurnTrace
}

// config returns the configuration of the gateway. It must not be changed.
func (v *observer) config() *Config { return &v.writer.g.cfg }

// begin starts to measure a turn that is about to run in this process. The run's context is derived from the one that it returns.
func (v *observer) begin(tn *turn, resumed bool) context.Context {
	ctx := v.writer.g.life
	t := &turnMetrics{agent: tn.name, began: time.Now(), text: resumed}
	parent := v.writer.parents.take(tn.id)
	if tr := v.config().Tracer; tr != nil {
		ctx, t.trace = tr.Turn(ctx, TurnInfo{Conversation: v.writer.id, Turn: tn.id, Agent: tn.name, Kind: tn.agent.Kind, Resumed: resumed, Parent: parent})
	} else if parent != "" {
		ctx = agent.WithTraceParent(ctx, parent) // the agent continues the caller's trace
	}
	if v.turns == nil {
		v.turns = map[string]*turnMetrics{}
	}
	v.turns[tn.id] = t
	return ctx
}

// abandon stops to measure all turns, because the writer gives the conversation up.
func (v *observer) abandon(err error) {
	for id, t := range v.turns {
		if t.trace != nil {
			t.trace.End(nil, err)
		}
		delete(v.turns, id)
	}
}

// committed is called with the events of each commit once readers can see them. asked is when the journal got them, durable when they
// were durable.
func (v *observer) committed(events []event.Event, asked, durable time.Time) {
	shown := time.Now()
	m := v.writer.metrics
	m.Events.Add(float64(len(events)))
	m.CommitEvents.Observe(float64(len(events)))
	m.ShowSeconds.Observe(shown.Sub(durable).Seconds())
	var last *turnMetrics // most commits hold events of one turn
	for i := range events {
		e := &events[i]
		switch e.Type {
		case event.PartAppend, event.PartReplace:
			if len(v.turns) == 0 || e.Field != event.Text || e.Text == "" {
				continue
			}
			t := v.turns[e.Turn]
			if t == nil {
				continue
			}
			last = t
			if !t.text {
				t.text = true
				m.firstText.WithLabelValues(t.agent).Observe(shown.Sub(t.began).Seconds())
				if t.trace != nil {
					t.trace.FirstText(shown)
				}
			}
		case event.TurnEnd:
			v.turnEnded(e)
		case event.TurnUpdate:
			t := v.turns[e.Turn]
			if t == nil {
				continue
			}
			if last = t; e.Get().Phase == phaseRetrying {
				m.retries.WithLabelValues(t.agent).Inc()
			}
		case event.MessageAdd:
			if v.config().LogContent {
				v.logMessage(e)
			}
		default:
			if t := v.turns[e.Turn]; t != nil {
				last = t
			}
		}
	}
	if last != nil && last.trace != nil {
		last.trace.Commit(len(events), asked, durable, shown)
	}
}

func (v *observer) turnEnded(e *event.Event) {
	name, seconds := "", -1.
	v.writer.feed.View(func(tr *transcript.Transcript) {
		if t := tr.Turn(e.Turn); t != nil {
			if name = t.Agent; t.StartedAt > 0 {
				seconds = float64(e.At-t.StartedAt) / 1000
			}
		}
	})
	if _, ok := v.writer.g.agent(name, agent.Principal{Tenant: v.writer.summary.Tenant, Subject: v.writer.summary.Owner}); !ok {
		name = other // a child names its agent as it likes, and an old turn's may not be configured any more
	}
	b := e.Get()
	v.writer.metrics.ended(name, b, seconds)
	v.log(e.Turn, name, b, seconds)
	v.writer.parents.take(e.Turn) // it may have ended in the queue
	if t := v.turns[e.Turn]; t != nil {
		if t.trace != nil {
			t.trace.End(b, nil)
		}
		delete(v.turns, e.Turn)
	}
}

// log tells of a turn that ended. An error's text may quote the conversation, so only its code is told.
func (v *observer) log(turn, agent string, b *event.Body, seconds float64) {
	attrs := []slog.Attr{slog.String("turn", turn), slog.String("agent", agent), slog.String("outcome", string(b.Outcome))}
	if seconds >= 0 {
		attrs = append(attrs, slog.Duration("took", time.Duration(seconds*float64(time.Second))))
	}
	if e := b.Error; e != nil {
		attrs = append(attrs, slog.String("code", e.Code))
	}
	v.writer.log.LogAttrs(context.Background(), slog.LevelInfo, "turn ended", attrs...)
	if !v.config().LogContent {
		return
	}
	if b.Error != nil {
		v.writer.log.Debug("error", "turn", turn, "text", b.Error.Message)
	}
	v.writer.feed.View(func(t *transcript.Transcript) {
		for _, m := range t.Messages {
			if m.Turn == turn {
				v.writer.log.Debug("message", "turn", turn, "message", m.ID, "role", m.Role, "text", m.Visible())
			}
		}
	})
}

// logMessage logs a message that was added as a whole.
func (v *observer) logMessage(e *event.Event) {
	b := e.Get()
	for _, p := range b.Parts {
		if p.Text != "" {
			v.writer.log.Debug("message", "message", e.Message, "role", b.Role, "text", p.Text)
		}
	}
}
