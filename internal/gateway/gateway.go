package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/base/keylock"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Gateway contains conversations and runs their turns. Make one with New, start it with Start, and end it with Shutdown. All
// methods may be called from several goroutines.
type Gateway struct {
	*core
	writers  *writers
	follows  *follows
	creating keylock.Locks // by idempotency key
}

// New returns a gateway that has not started.
func New(cfg Config) (*Gateway, error) {
	cfg.setDefaults()
	if cfg.Journal == nil {
		return nil, errors.New("gateway: Config.Journal is required")
	}
	if cfg.DefaultAgent != "" {
		if _, ok := cfg.Agents.Agent(cfg.DefaultAgent, agent.Principal{}); !ok {
			return nil, fmt.Errorf("gateway: the default agent %q is not one of the agents", cfg.DefaultAgent)
		}
	}
	c := newCore(cfg)
	c.pusher.SetLease(cfg.Lease)
	g := &Gateway{core: c, writers: newWriters(c)}
	g.follows = newFollows(c, g.writers)
	// The core is made first and knows neither the writers nor the follows, so what it needs of them is set here.
	c.sessions = g.follows
	c.compactor.compacted = g.writers.compacted
	c.reopen = &reopener{
		life: c.life, healthy: c.journal.Healthy, open: g.writers.recover, erase: c.removals.finish, log: c.log,
		conversations: map[string]bool{}, deletes: map[string]bool{},
	}
	return g, nil
}

// Start opens the gateway's own logs and finishes deletes that were interrupted. Then it opens every conversation with
// unfinished turns, which recovers them: queued turns stay queued, resumable ones are resumed, pushed ones wait for their
// producer, and others end as interrupted. It is called once, before anything else.
func (g *Gateway) Start(ctx context.Context) error {
	if err := g.audit.Open(ctx); err != nil { // before the interrupted deletes, which blank entries of the audit log
		return fmt.Errorf("gateway: %w", err)
	}
	if err := g.ledger.Open(ctx); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	if err := g.holds.load(ctx); err != nil {
		return err
	}
	// Deletes come before everything that lists conversations, so that a deleted one doesn't appear again.
	half, err := g.journal.Keys(ctx, journalkey.Deleting(""))
	if err != nil {
		return fmt.Errorf("gateway: list unfinished deletes: %w", err)
	}
	for _, kv := range half {
		if err := g.removals.erase(ctx, strings.TrimPrefix(kv.Key, journalkey.Deleting(""))); err != nil {
			return fmt.Errorf("gateway: finish delete: %w", err)
		}
	}
	if err := g.attachments.Start(ctx); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	open, err := g.journal.Conversations(ctx, journal.Query{Unfinished: true})
	if err != nil {
		return fmt.Errorf("gateway: list unfinished turns: %w", err)
	}
	// The tasks start before recovery, because recovery may need them: a turn that it ends is compacted, one that it can't open is
	// retried.
	g.tasks.Go(g.compactor.run)
	g.tasks.Go(g.reopen.run)
	g.tasks.Go(func() { g.attachments.Run(g.life) })
	g.tasks.Go(func() { g.audit.Run(g.life) })
	for _, s := range open {
		if err := g.writers.recover(ctx, s.ID); err != nil {
			g.log.Error("conversation with unfinished turns not opened; it is retried", "conversation", s.ID, "error", err)
			if !errors.Is(err, ErrDamaged) {
				g.reopen.add(s.ID)
			}
		}
	}
	// Last: the entries of sessions are added to recovered conversations, in which Leat's own turns are known.
	g.follows.start()
	return nil
}

// Shutdown refuses new turns and waits, up to the drain time, for running turns that the next start can't resume, or whose
// upstream would abort them when the gateway disconnects. Then turns that can be resumed are detached, pushed turns are left to
// their lease, and the others end as interrupted. Shutdown returns when every goroutine has ended. If all turns can be resumed,
// it doesn't wait, so an upgrade is a short pause.
func (g *Gateway) Shutdown(ctx context.Context) error {
	if !g.writers.drain() {
		return nil
	}
	g.follows.close() // the next start reads what is added to their sessions from now on
	g.undos.close()
	writers := g.writers.list()
	drain, cancel := context.WithTimeout(ctx, g.settings().Drain)
	defer cancel()
	for _, w := range writers {
		w.turns.pause()
	}
	for _, w := range writers {
		w.turns.drain(drain)
	}
	for _, w := range writers {
		w.turns.leave()
	}
	// Queued jobs are committed before the end of the context makes commits fail.
	last, cancelLast := context.WithTimeout(context.WithoutCancel(ctx), returnLimit)
	defer cancelLast()
	for _, w := range writers {
		if err := w.idle(last); err != nil {
			g.log.Error("shutdown: changes of a conversation were not committed in time", "conversation", w.id, "error", err)
		}
	}
	if g.cfg.Drained != nil {
		g.cfg.Drained(last)
	}
	// From here on no caller gets a writer. Then the context of all runs ends, and the feeds' readers are disconnected.
	g.writers.close()
	g.end()
	g.feeds.Close()
	tasksDone := make(chan struct{})
	go func() { g.tasks.wait(); g.pusher.Close(); close(tasksDone) }()
	select {
	case <-tasksDone:
		for _, w := range writers {
			w.observer.abandon(errDetached)
		}
		return nil
	case <-time.After(returnLimit):
		return errors.New("gateway: an agent did not return; its goroutine is left behind")
	}
}

// Draining reports whether Shutdown has begun.
func (g *Gateway) Draining() bool { return g.writers.draining() }

// Healthy returns nil, or the reason why the gateway can't accept changes at present.
func (g *Gateway) Healthy() error {
	if g.Draining() {
		return fmt.Errorf("%w: shutting down", ErrUnavailable)
	}
	return g.journal.Healthy()
}

// Holds returns the gateway's legal holds.
func (g *Gateway) Holds() *Holds { return g.holds }

// Audit returns the audit log. Surfaces let only admins read it.
func (g *Gateway) Audit() *audit.Log { return g.audit }

// Adjust replaces all settings at once.
func (g *Gateway) Adjust(s Settings) {
	s.setDefaults()
	g.liveSettings.Store(&s)
	g.pusher.SetLease(s.Lease)
	g.ledger.Reprice(s.Prices)
}

// Admits returns nil if a new turn of an agent would be admitted now, and otherwise the error with which it would be refused.
// If agent is empty, it is the default agent. It is for callers that create a conversation for the turn; Do checks again.
func (g *Gateway) Admits(agent string) error {
	if g.cfg.Admit == nil {
		return nil
	}
	agent = cmp.Or(agent, g.cfg.DefaultAgent)
	return g.cfg.Admit(agent)
}

// Collector returns the gauges of the queues. Unlike the counters of [Metrics], they are computed when they are collected.
func (g *Gateway) Collector() prometheus.Collector { return collector{g} }

type collector struct{ g *Gateway }

var (
	queuedDesc  = prometheus.NewDesc("leat_turns_queued", "Turns that wait for another turn of their conversation.", nil, nil)
	jobsDesc    = prometheus.NewDesc("leat_commit_queue_jobs", "Changes of conversations that wait to be committed.", nil, nil)
	bytesDesc   = prometheus.NewDesc("leat_commit_queue_bytes", "Bytes of text that wait to be committed.", nil, nil)
	failingDesc = prometheus.NewDesc("leat_conversations_failing", "Conversations whose commits fail now.", nil, nil)
	settleDesc  = prometheus.NewDesc("leat_settle_backlog", "Conversations whose logs wait to be compacted.", nil, nil)
	feedsDesc   = prometheus.NewDesc("leat_feeds_open", "Conversations whose newest messages are in memory for readers.", nil, nil)
)

// Describe implements [prometheus.Collector].
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{queuedDesc, jobsDesc, bytesDesc, failingDesc, settleDesc, feedsDesc} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector]. It locks each open conversation for a moment.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	var queued, jobs, bytes, failing int
	for _, w := range c.g.writers.list() {
		waitingJobs, text, isFailing := w.load()
		jobs, bytes = jobs+waitingJobs, bytes+text
		if isFailing {
			failing++
		}
		queued += w.queued()
	}
	for _, v := range []struct {
		desc *prometheus.Desc
		n    int
	}{{queuedDesc, queued}, {jobsDesc, jobs}, {bytesDesc, bytes}, {failingDesc, failing}, {settleDesc, c.g.compactor.backlog()}, {feedsDesc, c.g.feeds.Len()}} {
		ch <- prometheus.MustNewConstMetric(v.desc, prometheus.GaugeValue, float64(v.n))
	}
}
