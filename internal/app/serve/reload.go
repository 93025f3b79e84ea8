// Reloading the configuration of a running gateway: what may change at once is applied, and the rest is reported as waiting for a
// restart.

package serve

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
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/data"
	"github.com/leat-dev/leat/internal/gateway/status"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/ops"
	"github.com/leat-dev/leat/internal/service/usage"
	"github.com/leat-dev/leat/internal/voice/wire"
)

// reloader applies a changed configuration while the gateway runs. Keys that need a restart are reported and wait for
// it.
//
// It keeps two configurations. A reload applies only live keys, so startConfig, against which the pending reasons are
// computed, stays the one that New got, and liveConfig becomes the new one. If a key is changed back, its reason is
// gone with the next reload.
type reloader struct {
	load      func() (config.Config, error) // nil without a configuration file
	next      chan config.Config            // the configuration to restart with; buffers one
	agent     *status.Agent
	kinds     agent.Kinds
	getenv    func(string) (string, bool)
	roster    *gateway.Roster
	gateway   *gateway.Gateway
	channels  *channel.Pipeline
	voice     *wire.Service
	server    *server.Server
	retention *data.Retention
	level     *slog.LevelVar
	pend      func(reasons []string)
	log       *slog.Logger

	mu          sync.Mutex    // serializes reloads and restarts
	startConfig config.Config // in use by the parts that need a restart
	liveConfig  config.Config // in use by all others
}

// takes reports whether a signal requests a reload. Without a configuration file SIGHUP has its usual meaning: the terminal was closed.
func (r *reloader) takes(s os.Signal) bool { return s == syscall.SIGHUP && r.load != nil }

// reload applies the whole configuration or, if anything in it is wrong, nothing. Everything that can fail comes
// first: the file is read, and the changed agents and channels are made. Then it applies the live keys and reports those that need
// a restart. A gateway that was configured with flags alone has nothing to reload, and refuses with status 409.
func (r *reloader) reload() (ops.Reloaded, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.load == nil {
		return ops.Reloaded{}, server.Errorf(http.StatusConflict, server.ReasonInvalid, "the gateway was started without a configuration file")
	}
	next, err := r.load()
	if err != nil {
		return ops.Reloaded{}, r.refuse(err)
	}
	changed, err := r.makeAgents(&next)
	if err != nil {
		return ops.Reloaded{}, r.refuse(err)
	}
	channels, err := r.makeChannels(&next)
	if err != nil {
		return ops.Reloaded{}, r.refuse(err)
	}
	result := ops.Reloaded{Applied: []string{}, Reasons: []string{}}
	for _, k := range next.Changed(&r.liveConfig) {
		if k.Reloadable {
			result.Applied = append(result.Applied, k.Path)
		}
	}
	for _, k := range next.Changed(&r.startConfig) {
		if !k.Reloadable {
			result.Reasons = append(result.Reasons, k.Path+" changed")
		}
	}
	result.Pending = len(result.Reasons) > 0
	r.apply(&next, changed)
	r.applyChannels(&next, channels)
	r.liveConfig = next
	r.pend(result.Reasons)
	r.log.Info("configuration reloaded", "applied", result.Applied, "waits_for_restart", result.Reasons)
	return result, nil
}

// refuse logs why a configuration is not applied, and returns the error as the response of a route (status 422).
func (r *reloader) refuse(err error) error {
	r.log.Error("configuration not applied; the gateway continues with the current one", "error", err)
	return server.Errorf(http.StatusUnprocessableEntity, server.ReasonInvalid, "%v", err)
}

// restart requests a restart with the current configuration and returns before it happens. If anything in the
// configuration is wrong, nothing changes: a gateway that ended but couldn't start again would be worse than one with
// an old configuration. Requests while a restart is pending have no further effect.
func (r *reloader) restart() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.liveConfig
	if r.load != nil {
		var err error
		if next, err = r.load(); err == nil {
			err = Check(&next, r.kinds)
		}
		if err != nil {
			return r.refuse(err)
		}
	}
	r.pend(nil)
	r.agent.Leave() // clients get the status while their sockets are still open
	select {
	case r.next <- next:
	default: // a restart was requested already
	}
	return nil
}

// makeAgents makes the agents that are new or changed, by name. It makes none of the unchanged ones, whose processes and sessions continue.
//
// An agent counts as changed if its spec or its limit on silence differs. A new name must not belong to a plugin. The
// default agent of the start is an exception: if it was removed from the file, it is still in the roster and may be
// added again.
func (r *reloader) makeAgents(next *config.Config) (map[string]gateway.Agent, error) {
	if err := Check(next, r.kinds); err != nil {
		return nil, err
	}
	old := map[string]time.Duration{}
	specs := map[string]agent.Spec{}
	for _, s := range r.liveConfig.Agents {
		specs[s.Name], old[s.Name] = s, r.liveConfig.SilenceOf(s)
	}
	changed := map[string]gateway.Agent{}
	for _, s := range next.Agents {
		silence := next.SilenceOf(s)
		before, isOld := specs[s.Name]
		if isOld && reflect.DeepEqual(before, s) && old[s.Name] == silence {
			continue
		}
		if _, isTaken := r.roster.Agent(s.Name, agent.Principal{}); isTaken && !isOld && s.Name != r.startConfig.DefaultAgent {
			return nil, fmt.Errorf("%w: agents: %q is already the name of another agent, such as an installed plugin", config.ErrInvalid, s.Name)
		}
		changedAgent, err := newAgent(next, r.kinds, s, r.getenv, r.log)
		if err != nil {
			return nil, err
		}
		changed[s.Name] = changedAgent
	}
	return changed, nil
}

// apply makes a checked configuration take effect. Turns that are running keep their agent and their limits. New
// agents are added before the old ones are removed, so that no conversation is without one. An agent that can't be
// replaced is logged, and the others still are.
func (r *reloader) apply(next *config.Config, changed map[string]gateway.Agent) {
	r.gateway.Adjust(settingsOf(next))
	r.server.SetReach(server.Reach{Hosts: next.Hosts, Origins: next.AllowedOrigins, Apps: next.AppOrigins})
	r.retention.SetAges(agesOf(next))
	level, _ := next.Level() // it was checked
	r.level.Set(level)
	for name, a := range changed {
		if err := r.roster.Replace(name, a); err != nil {
			r.log.Error("agent not replaced", "agent", name, "error", err)
		}
	}
	keepAgent := map[string]bool{r.startConfig.DefaultAgent: true} // it stays until a restart makes another agent the default
	for _, s := range next.Agents {
		keepAgent[s.Name] = true
	}
	for _, s := range r.liveConfig.Agents {
		if !keepAgent[s.Name] {
			r.roster.Remove(s.Name)
		}
	}
}

// Check checks what [config.Config.Check] can't: that each agent can be made, and that the keys for users' tokens can
// be read. It starts nothing: the agents that it makes are dropped before they have a process or a connection.
func Check(c *config.Config, kinds agent.Kinds) error {
	var errs []error
	for _, s := range c.Agents {
		if _, err := kinds.Make(s); err != nil {
			errs = append(errs, fmt.Errorf("%w: agents: %w", config.ErrInvalid, err))
		}
	}
	_, err := users(c.Users, slog.New(slog.DiscardHandler))
	return errors.Join(append(errs, err)...)
}

// settingsOf returns the settings that a gateway can change while it runs. Each of them is a key with the tag live.
func settingsOf(c *config.Config) gateway.Settings {
	return gateway.Settings{
		Drain: time.Duration(c.Drain), Lease: time.Duration(c.Lease), WaitLimit: time.Duration(c.WaitLimit), TurnLimit: c.TurnLimitOf(),
		MaxMessage: int(c.Limits.Message), MaxQueued: c.Limits.Queued, HistoryMessages: c.Limits.History, HistoryBytes: int(c.Limits.HistoryBytes),
		Prices: usage.Prices(c.Prices),
	}
}

// agesOf returns how long each kind of data is kept.
func agesOf(c *config.Config) data.Ages {
	ages := data.Ages{Default: time.Duration(c.Retention.Default), Agents: map[string]time.Duration{}, Audit: time.Duration(c.AuditRetention)}
	for name, age := range c.Retention.Agents {
		ages.Agents[name] = time.Duration(age)
	}
	return ages
}
