// Metrics, traces and log lines of turns. They follow from what was committed, so each turn is counted once.

package gateway

import (
	"context"
	"log/slog"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/transcript"
)

// observer counts and times the events of a conversation's commits, so that each turn is counted once, when its end is durable. Only the
// writer's goroutine uses it.
type observer struct {
	core    *core
	log     *slog.Logger // names the conversation
	owner   agent.Principal
	feed    *feed.Feed
	parents *parents
	turns   map[string]*turnMetrics // that run here
}

// phaseRetrying is the phase that agents report while they wait before the next attempt.
const phaseRetrying = "retrying"

// turnMetrics measures a running turn.
type turnMetrics struct {
	agent string
	began time.Time
	text  bool // its first text was shown
	trace TurnTrace
}

// begin starts to measure a turn that is about to run in this process. It returns the context from which the run's context is
// derived. info needs no Parent. It must be called once for each turn, before its run starts. turnEnded or abandon
// ends what it began.
func (v *observer) begin(info TurnInfo) context.Context {
	// The run's context doesn't come from a request: a turn outlives the command that started it.
	ctx := v.core.life
	// A resumed turn has shown its first text before, so its time to the first text isn't measured again.
	t := &turnMetrics{agent: info.Agent, began: time.Now(), text: info.IsResumed}
	info.Parent = v.parents.take(info.Turn)
	if tr := v.core.cfg.Tracer; tr != nil {
		ctx, t.trace = tr.Turn(ctx, info)
	} else if info.Parent != "" {
		ctx = agent.WithTraceParent(ctx, info.Parent) // the agent continues the caller's trace
	}
	v.turns[info.Turn] = t
	return ctx
}

// abandon stops measuring all turns because the writer gives the conversation up. The turns aren't counted as ended,
// because recovery continues them with another writer or ends them.
func (v *observer) abandon(err error) {
	for id, t := range v.turns {
		if t.trace != nil {
			t.trace.End(nil, err)
		}
		delete(v.turns, id)
	}
}

// committed counts the events of a commit. It is called once readers can see them. submittedAt is when the journal got them,
// durable when they were durable. It must not block, since the next commit waits for it.
func (v *observer) committed(events []event.Event, submittedAt, durable time.Time) {
	shownAt := time.Now()
	m := v.core.metrics
	m.Events.Add(float64(len(events)))
	m.CommitEvents.Observe(float64(len(events)))
	m.ShowSeconds.Observe(shownAt.Sub(durable).Seconds())
	var last *turnMetrics // most commits contain events of one turn
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
				m.firstText.WithLabelValues(t.agent).Observe(shownAt.Sub(t.began).Seconds())
				if t.trace != nil {
					t.trace.FirstText(shownAt)
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
			if v.core.cfg.LogContent {
				v.logMessage(e)
			}
		default:
			if t := v.turns[e.Turn]; t != nil {
				last = t
			}
		}
	}
	if last != nil && last.trace != nil {
		last.trace.Commit(len(events), submittedAt, durable, shownAt)
	}
}

// turnEnded counts and logs the end of a turn, and ends its trace. The turn may have run in an earlier process, or
// never. The duration is unknown, and not counted, for a turn that never started or is no longer in memory.
func (v *observer) turnEnded(e *event.Event) {
	name, seconds := "", -1.
	v.feed.View(func(tr *transcript.Transcript) {
		if t := tr.Turn(e.Turn); t != nil {
			if name = t.Agent; t.StartedAt > 0 {
				seconds = float64(e.At-t.StartedAt) / 1000
			}
		}
	})
	if _, ok := v.core.agent(name, v.owner); !ok {
		name = other // an upstream may choose the agent name of an inner turn, and the agent of an old turn may have been removed
	}
	b := e.Get()
	v.core.metrics.countEnd(name, b, seconds)
	v.logTurn(e.Turn, name, b, seconds)
	v.parents.take(e.Turn) // it may have ended in the queue
	if t := v.turns[e.Turn]; t != nil {
		if t.trace != nil {
			t.trace.End(b, nil)
		}
		delete(v.turns, e.Turn)
	}
}

// logTurn logs the end of a turn. Only the code of an error is logged, because its text may quote the conversation.
func (v *observer) logTurn(turn, agent string, b *event.Body, seconds float64) {
	attrs := []slog.Attr{slog.String("turn", turn), slog.String("agent", agent), slog.String("outcome", string(b.Outcome))}
	if seconds >= 0 {
		attrs = append(attrs, slog.Duration("took", time.Duration(seconds*float64(time.Second))))
	}
	if e := b.Error; e != nil {
		attrs = append(attrs, slog.String("code", e.Code))
	}
	v.log.LogAttrs(context.Background(), slog.LevelInfo, "turn ended", attrs...)
	if !v.core.cfg.LogContent {
		return
	}
	if b.Error != nil {
		v.log.Debug("error", "turn", turn, "text", b.Error.Message)
	}
	v.feed.View(func(t *transcript.Transcript) {
		for _, m := range t.Messages {
			if m.Turn == turn {
				v.log.Debug("message", "turn", turn, "message", m.ID, "role", m.Role, "text", m.Visible())
			}
		}
	})
}

// logMessage logs a message that was added as a whole.
func (v *observer) logMessage(e *event.Event) {
	b := e.Get()
	for _, p := range b.Parts {
		if p.Text != "" {
			v.log.Debug("message", "message", e.Message, "role", b.Role, "text", p.Text)
		}
	}
}
