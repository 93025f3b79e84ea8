package data

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal"
)

const (
	// sweepAfter is how long after the start the first sweep comes: when those who come back have come back.
	sweepAfter = time.Minute
	// sweepEvery spaces sweeps; nobody counts on the hour at which an old conversation goes.
	sweepEvery = time.Hour
	// sweepPage is how many conversations are listed at once.
	sweepPage = 100
	// maxListed bounds the ids that a sweep names.
	maxListed = 1000
)

// Ages say for how long conversations are kept after their last change; 0 is for ever.
type Ages struct {
	Default time.Duration
	// Agents are ages of conversations by the name of their agent, in place of Default.
	Agents map[string]time.Duration
	// Audit is that of the entries of the audit log.
	Audit time.Duration
}

// of returns the age of an agent's conversations.
func (a Ages) of(agent string) time.Duration {
	if d, ok := a.Agents[agent]; ok {
		return d
	}
	return a.Default
}

// least returns the lowest age above 0; 0 where everything is kept for ever.
func (a Ages) shortest() time.Duration {
	age := a.Default
	for _, d := range a.Agents {
		if d > 0 && (age == 0 || d < age) {
			age = d
		}
	}
	return age
}

// Retention deletes conversations that nobody has used for long. Make one with NewRetention; its methods may be called
// from several goroutines.
type Retention struct {
	gw        *gateway.Gateway
	journal   lister
	ages      atomic.Pointer[Ages]
	agent     string // of conversations that name none
	log       *slog.Logger
	semaphore chan struct{} // whoever puts a value in sweeps
}

// NewRetention returns what keeps to ages. agent is that of conversations that name none.
func NewRetention(gw *gateway.Gateway, j lister, ages Ages, agent string, log *slog.Logger) *Retention {
	r := &Retention{gw: gw, journal: j, agent: agent, log: log, semaphore: make(chan struct{}, 1)}
	r.SetAges(ages)
	return r
}

// Keep has other ages count from the next sweep on.
func (r *Retention) SetAges(ages Ages) { r.ages.Store(&ages) }

// Swept is what a sweep has done, or would do.
type Swept struct {
	DryRun bool `json:"dry_run,omitempty"`
	// Deleted counts conversations; Held those that are old enough and kept by a hold; Audit entries of the audit log.
	Deleted int `json:"deleted"`
	OnHold  int `json:"held"`
	Audit   int `json:"audit"`
	// Conversations names those that were deleted, the first thousand of them.
	Conversations []string `json:"conversations,omitempty"`
}

// Run sweeps from time to time until the context ends.
func (r *Retention) Run(ctx context.Context) {
	timer := time.NewTimer(sweepAfter)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		switch s, err := r.Sweep(ctx, false); {
		case ctx.Err() != nil:
			return
		case err != nil:
			r.log.Error("retention: sweep cut off; the next one goes on", "deleted", s.Deleted, "error", err)
		case s.Deleted+s.Audit > 0:
			r.log.Info("retention: swept", "deleted", s.Deleted, "held", s.OnHold, "audit", s.Audit)
		}
		timer.Reset(sweepEvery)
	}
}

// Sweep deletes what is older than it may be, step by step: between two deletes it rests for as long as the last one took.
// A dry run only says what a sweep would do. After an error Swept says what was done until then.
func (r *Retention) Sweep(ctx context.Context, dry bool) (s Swept, err error) {
	select {
	case r.semaphore <- struct{}{}:
		defer func() { <-r.semaphore }()
	case <-ctx.Done():
		return s, ctx.Err()
	}
	s.DryRun = dry
	if err := r.conversations(ctx, &s); err != nil {
		return s, err
	}
	return s, r.audit(ctx, &s)
}

func (r *Retention) conversations(ctx context.Context, s *Swept) error {
	shortest := r.ages.Load().shortest()
	if shortest == 0 {
		return nil
	}
	start := time.Now()
	q := journal.Query{BeforeUpdated: start.Add(-shortest).UnixMilli(), Limit: sweepPage}
	for {
		page, err := r.journal.Conversations(ctx, q)
		if err != nil {
			return err
		}
		for i := range page {
			c := &page[i]
			q.BeforeUpdated, q.BeforeID = c.Updated, c.ID
			if err := r.expire(ctx, c, start, s); err != nil {
				return err
			}
		}
		if len(page) < sweepPage {
			return nil
		}
	}
}

// expire deletes one conversation, if it is to be.
func (r *Retention) expire(ctx context.Context, c *journal.Summary, start time.Time, s *Swept) error {
	agent := c.Agent
	if agent == "" {
		agent = r.agent
	}
	age := r.ages.Load().of(agent)
	before := start.Add(-age).UnixMilli()
	if age == 0 || c.Updated >= before || len(c.Open) > 0 {
		return nil
	}
	if _, onHold := r.gw.Holds().HoldOn(c); onHold {
		s.OnHold++
		return nil
	}
	if !s.DryRun {
		began := time.Now()
		switch isDeleted, err := r.gw.Expire(ctx, "retention", c.ID, before); {
		case err != nil:
			return err
		case !isDeleted:
			return nil
		}
		r.log.Debug("retention: conversation deleted", "conversation", c.ID, "agent", agent)
		select {
		case <-time.After(time.Since(began)):
		case <-ctx.Done():
			s.Deleted++
			return ctx.Err()
		}
	}
	s.Deleted++
	if len(s.Conversations) < maxListed {
		s.Conversations = append(s.Conversations, c.ID)
	}
	return nil
}

// audit trims the audit log. While anything is held, all of it is kept: it may be what is asked for.
func (r *Retention) audit(ctx context.Context, s *Swept) (err error) {
	ages := r.ages.Load()
	if ages.Audit == 0 || len(r.gw.Holds().List()) > 0 {
		return nil
	}
	before := time.Now().Add(-ages.Audit)
	if s.DryRun {
		s.Audit, err = r.gw.Audit().Before(ctx, before)
	} else {
		s.Audit, err = r.gw.Audit().Trim(ctx, before)
	}
	return err
}
