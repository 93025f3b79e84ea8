package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"reflect"
	"sync"
	"syscall"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/data"
	"github.com/leat-dev/leat/internal/gateway/status"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/ops"
)

// reloader takes over a configuration that has changed while the gateway runs: at once what can be, and of the rest it tells that
// it waits for a restart.
type reloader struct {
	load      func() (config.Config, error) // nil: there is nothing to load again
	next      chan config.Config            // what to restart with; has room for one
	agent     *status.Agent
	kinds     agent.Kinds
	lookup    func(string) (string, bool)
	roster    *gateway.Roster
	gw        *gateway.Gateway
	srv       *server.Server
	retention *data.Retention
	level     *slog.LevelVar
	pend      func(reasons []string)
	log       *slog.Logger

	mu    sync.Mutex    // one at a time
	begun config.Config // what the parts that wait run with
	now   config.Config // what the others do
}

// takes reports whether a signal asks for the configuration to be loaded again. Where there is none to load, SIGHUP is what it is
// to other programs: the terminal is gone.
func (r *reloader) takes(s os.Signal) bool { return s == syscall.SIGHUP && r.load != nil }

// reload takes over all of a configuration or, where anything about it is wrong, nothing.
func (r *reloader) reload() (ops.Reloaded, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.load == nil {
		return ops.Reloaded{}, server.Errorf(http.StatusConflict, server.ReasonInvalid, "the gateway runs without a configuration file")
	}
	next, err := r.load()
	if err != nil {
		return ops.Reloaded{}, r.refuse(err)
	}
	coming, err := r.made(&next)
	if err != nil {
		return ops.Reloaded{}, r.refuse(err)
	}
	done := ops.Reloaded{Applied: []string{}, Reasons: []string{}}
	for _, k := range next.Changed(&r.now) {
		if k.Live {
			done.Applied = append(done.Applied, k.Path)
		}
	}
	for _, k := range next.Changed(&r.begun) {
		if !k.Live {
			done.Reasons = append(done.Reasons, k.Path+" changed")
		}
	}
	done.Pending = len(done.Reasons) > 0
	r.apply(&next, coming)
	r.now = next
	r.pend(done.Reasons)
	r.log.Info("configuration loaded again", "applied", done.Applied, "waits_for_restart", done.Reasons)
	return done, nil
}

func (r *reloader) refuse(err error) error {
	r.log.Error("the configuration is not taken over; the gateway goes on with what it has", "error", err)
	return server.Errorf(http.StatusUnprocessableEntity, server.ReasonInvalid, "%v", err)
}

// made makes the agents that are new or have changed, by name.
func (r *reloader) made(next *config.Config) (map[string]gateway.Agent, error) {
	if err := check(next, r.kinds); err != nil {
		return nil, err
	}
	old := map[string]time.Duration{}
	specs := map[string]agent.Spec{}
	for _, s := range r.now.Agents {
		specs[s.Name], old[s.Name] = s, r.now.SilenceOf(s)
	}
	all := map[string]gateway.Agent{}
	for _, s := range next.Agents {
		silence := next.SilenceOf(s)
		before, mine := specs[s.Name]
		if mine && reflect.DeepEqual(before, s) && old[s.Name] == silence {
			continue
		}
		if _, taken := r.roster.Agent(s.Name, agent.Principal{}); taken && !mine && s.Name != r.begun.DefaultAgent {
			return nil, fmt.Errorf("%w: agents: %q is the name of an agent that has come otherwise, such as an installed plugin", config.ErrInvalid, s.Name)
		}
		one, err := configured(next, r.kinds, s, r.lookup)
		if err != nil {
			return nil, err
		}
		all[s.Name] = one
	}
	return all, nil
}

func (r *reloader) apply(next *config.Config, coming map[string]gateway.Agent) {
	r.gw.Adjust(settingsOf(next))
	r.srv.SetReach(server.Reach{Hosts: next.Hosts, Origins: next.AllowedOrigins, Apps: next.AppOrigins})
	r.retention.Keep(agesOf(next))
	level, _ := next.Level() // it was checked
	r.level.Set(level)
	for name, a := range coming {
		if err := r.roster.Replace(name, a); err != nil {
			r.log.Error("agent not taken over", "agent", name, "error", err)
		}
	}
	named := map[string]bool{r.begun.DefaultAgent: true} // which stays until the restart that makes another one the default
	for _, s := range next.Agents {
		named[s.Name] = true
	}
	for _, s := range r.now.Agents {
		if !named[s.Name] {
			r.roster.Remove(s.Name)
		}
	}
}

// check looks at what config.Check can't know: whether agents can be made, and whether the keys of users' tokens are there.
func check(c *config.Config, kinds agent.Kinds) error {
	var errs []error
	for _, s := range c.Agents {
		if _, err := kinds.Make(s); err != nil {
			errs = append(errs, fmt.Errorf("%w: agents: %w", config.ErrInvalid, err))
		}
	}
	_, err := users(c.Users, slog.New(slog.DiscardHandler))
	return errors.Join(append(errs, err)...)
}

// settingsOf is what the gateway itself can change while it runs.
func settingsOf(c *config.Config) gateway.Settings {
	return gateway.Settings{
		Drain: time.Duration(c.Drain), Lease: time.Duration(c.Lease), WaitLimit: time.Duration(c.WaitLimit), TurnLimit: c.TurnLimitOf(),
		MaxMessage: int(c.Limits.Message), MaxQueued: c.Limits.Queued, HistoryMessages: c.Limits.History, HistoryBytes: int(c.Limits.HistoryBytes),
		Prices: c.Prices.List(),
	}
}

// agesOf says for how long things are kept.
func agesOf(c *config.Config) data.Ages {
	ages := data.Ages{Default: time.Duration(c.Retention.Default), Agents: map[string]time.Duration{}, Audit: time.Duration(c.AuditRetention)}
	for name, age := range c.Retention.Agents {
		ages.Agents[name] = time.Duration(age)
	}
	return ages
}
