package inspection

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/capture"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// Gateway decides who may inspect what.
type Gateway interface {
	// Turn returns a turn with which the principal may do action, and the id of its conversation.
	Turn(ctx context.Context, p gateway.Principal, action gateway.Action, id string) (conversation string, t transcript.Turn, err error)
	// Conversation returns a conversation with which the principal may do action.
	Conversation(ctx context.Context, p gateway.Principal, action gateway.Action, id string) (journal.Summary, error)
}

// Journal has the logs and the traces.
type Journal interface {
	Read(ctx context.Context, conversation string, after int64, limit int) (journal.Range, error)
	Trace(ctx context.Context, conversation, turn string) (journal.Trace, error)
}

// Config is what an [Inspector] is made of. Journal is needed.
type Config struct {
	Journal Journal
	// Captures has the bytes of recent turns. If it is nil, none are kept.
	Captures *capture.Log
	// Dialects decode captured frames.
	Dialects dialect.Registry
	// Agents know the secrets to mask. If it is nil, only secrets of known forms are masked.
	Agents gateway.Directory
	// Metrics count mismatches. If it is nil, they are only logged.
	Metrics *gateway.Metrics
	// Log receives mismatches. If it is nil, they are only counted.
	Log *slog.Logger
}

// Inspector explains turns. Its methods may be called by several goroutines at once.
type Inspector struct {
	gateway  Gateway
	journal  Journal
	captures *capture.Log
	dialects dialect.Registry
	agents   gateway.Directory
	metrics  *gateway.Metrics
	log      *slog.Logger
	reports  limiter
}

// New returns an inspector of the gateway's turns.
func New(gw Gateway, c Config) *Inspector {
	if c.Agents == nil {
		c.Agents = gateway.Agents{}
	}
	if c.Metrics == nil {
		c.Metrics = gateway.NewMetrics()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Inspector{
		gateway: gw, journal: c.Journal, captures: c.Captures, dialects: c.Dialects, agents: c.Agents, metrics: c.Metrics, log: c.Log,
	}
}

// secretsOf returns the configured secrets of an agent. Those of an agent that was removed are unknown.
func (in *Inspector) secretsOf(name string) []string {
	a, _ := in.agents.Agent(name, agent.Principal{})
	return a.Secrets
}

// kindOf returns the kind of an agent on behalf of a principal; it is empty if the agent was removed.
func (in *Inspector) kindOf(name string, p gateway.Principal) string {
	if name == gateway.PushAgent {
		return gateway.PushAgent
	}
	a, _ := in.agents.Agent(name, agent.Principal{Tenant: p.Tenant, Subject: p.Subject})
	return a.Kind
}

// pageBytes is how much of a log is read at once.
const pageBytes = 1 << 20

// eachEvent calls f with the events of a conversation's log, in order.
func (in *Inspector) eachEvent(ctx context.Context, conversation string, f func(*event.Event) error) error {
	for after, hasMore := int64(0), true; hasMore; {
		r, err := in.journal.Read(ctx, conversation, after, pageBytes)
		if err != nil {
			return gateway.JournalError("read conversation", err)
		}
		for i := range r.Events {
			after = r.Events[i].Seq
			if err := f(&r.Events[i]); err != nil {
				return fmt.Errorf("inspection: read conversation %s: %w", conversation, err)
			}
		}
		hasMore = r.HasMore && len(r.Events) > 0
	}
	return nil
}

// Trace returns when each event of a turn arrived and was committed, after a seq; 0 returns all. A running turn's trace ends at its
// last commit. Readers of the turn may see it. If the trace was removed, the error is [gateway.ErrNotFound].
func (in *Inspector) Trace(ctx context.Context, p gateway.Principal, turn string, after int64) (journal.Trace, error) {
	conversation, _, err := in.gateway.Turn(ctx, p, gateway.ActionRead, turn)
	if err != nil {
		return journal.Trace{}, err
	}
	t, err := in.journal.Trace(ctx, conversation, turn)
	if err != nil {
		return journal.Trace{}, gateway.JournalError("look up trace", err)
	}
	start, _ := slices.BinarySearchFunc(t.Commits, after+1, func(c journal.TraceCommit, seq int64) int { return cmp.Compare(c.Seq, seq) })
	t.Commits = append([]journal.TraceCommit{}, t.Commits[start:]...)
	t.Replacements = slices.DeleteFunc(t.Replacements, func(r journal.TraceReplace) bool { return r.Seq <= after })
	return t, nil
}
