// Deleting conversations by age. One sweep runs at a time, and legal holds are excepted.

package data

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal"
)

const (
	// sweepAfter is the delay of the first sweep after the start, so that clients can reconnect first.
	sweepAfter = time.Minute
	// sweepEvery is the interval between sweeps. Ages are days or months, so an hour's delay doesn't matter.
	sweepEvery = time.Hour
	// sweepPage is the number of conversations that are listed at once.
	sweepPage = 100
	// maxListed bounds the ids in a report.
	maxListed = 1000
)

// Ages configures how long conversations are kept after their last change. An age of 0 keeps them forever.
type Ages struct {
	Default time.Duration
	// Agents overrides Default by the name of the agent.
	Agents map[string]time.Duration
	// Audit is the age of entries in the audit log.
	Audit time.Duration
}

// of returns the age for conversations of an agent.
func (a Ages) of(agent string) time.Duration {
	if d, ok := a.Agents[agent]; ok {
		return d
	}
	return a.Default
}

// shortest returns the lowest age above 0, or 0 if everything is kept forever. A sweep lists only conversations that are at
// least this old.
func (a Ages) shortest() time.Duration {
	age := a.Default
	for _, d := range a.Agents {
		if d > 0 && (age == 0 || d < age) {
			age = d
		}
	}
	return age
}

// Retention deletes conversations that have not changed for longer than their age. Make one with NewRetention. Its methods may
// be called from several goroutines.
type Retention struct {
	gw        *gateway.Gateway
	journal   lister
	ages      atomic.Pointer[Ages]
	agent     string // agent of conversations that name none
	log       *slog.Logger
	semaphore chan struct{} // capacity 1: holds a value while a sweep runs
}

// NewRetention returns a Retention that applies ages. agent is the default agent, whose age applies to conversations that name none.
func NewRetention(gw *gateway.Gateway, j lister, ages Ages, agent string, log *slog.Logger) *Retention {
	r := &Retention{gw: gw, journal: j, agent: agent, log: log, semaphore: make(chan struct{}, 1)}
	r.SetAges(ages)
	return r
}

// SetAges replaces the ages. A running sweep may still use the old ones.
func (r *Retention) SetAges(ages Ages) { r.ages.Store(&ages) }

// sweepReport is the result of a sweep, or the forecast of a dry run.
type sweepReport struct {
	DryRun bool `json:"dry_run,omitempty"`
	// Deleted counts deleted conversations, OnHold expired ones that a legal hold keeps, and Audit deleted audit entries.
	Deleted int `json:"deleted"`
	OnHold  int `json:"held"`
	Audit   int `json:"audit"`
	// Conversations lists the ids of the first 1,000 deleted conversations.
	Conversations []string `json:"conversations,omitempty"`
}

// Run sweeps a minute after the start and then every hour, until the context ends. An error is only logged: a sweep keeps no state, so the
// next one continues with the conversations that are left.
func (r *Retention) Run(ctx context.Context) {
	for wait := sweepAfter; retry.Sleep(ctx, wait) == nil; wait = sweepEvery {
		switch s, err := r.Sweep(ctx, false); {
		case ctx.Err() != nil:
			return
		case err != nil:
			r.log.Error("retention: sweep interrupted; the next one resumes it", "deleted", s.Deleted, "error", err)
		case s.Deleted+s.Audit > 0:
			r.log.Info("retention: swept", "deleted", s.Deleted, "held", s.OnHold, "audit", s.Audit)
		}
	}
}

// Sweep deletes expired conversations and audit entries. A dry run only counts. After an error, s counts what was deleted before it.
// Only one sweep runs at a time: a second call waits for the first.
func (r *Retention) Sweep(ctx context.Context, dry bool) (s sweepReport, err error) {
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

// conversations expires the conversations that are older than the shortest age. It lists them from the newest to the oldest; the position in
// the list stays valid while conversations are deleted, because it is the time and the id of the last one.
func (r *Retention) conversations(ctx context.Context, s *sweepReport) error {
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

// expire deletes one conversation if it is older than its agent's age, has no open turn and is not under a legal hold. The
// gateway checks the age again when it deletes, so a conversation that has changed since it was listed is kept. The pause after a
// deletion is as long as the deletion took, so the share of the sweep in the journal's time stays below one half on any disk.
func (r *Retention) expire(ctx context.Context, c *journal.Summary, start time.Time, s *sweepReport) error {
	agent := cmp.Or(c.Agent, r.agent)
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

// audit trims the audit log. While there is any legal hold, the whole audit log is kept, because it may be evidence.
func (r *Retention) audit(ctx context.Context, s *sweepReport) (err error) {
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
