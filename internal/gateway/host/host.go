package host

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/plugin"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/plugins"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Config configures a [Host]. All fields except Env, Silence and ReportFailure are required.
type Config struct {
	Roster *gateway.Roster // the gateway's agents, which plugins join under names that are free
	// Env lists the environment variables of the gateway that plugins may request.
	Env     []string
	Dialect dialect.Dialect // leat
	// Silence is how long the agent of a plugin may show no progress before its turn fails, as in [gateway.Agent].
	Silence time.Duration
	Journal Journal
	// ReportFailure passes on failed deliveries to chats with a conversation. It may be nil.
	ReportFailure func(ctx context.Context, f Failure) error
	Log           *slog.Logger
}

// Journal is the part of the journal from which the host reads the bindings of chats. The commits of their conversations write them.
type Journal interface {
	Keys(ctx context.Context, prefix string) ([]journal.KeyValue, error)
}

// Host runs plugins. All methods may be called from several goroutines.
type Host struct {
	cfg Config

	// replacing is write-locked while a plugin is replaced or removed, which can take seconds, and read-locked while a chat is attached
	// or detached.
	replacing sync.RWMutex

	// mu protects the fields below. It is not held while a channel is closed: that waits for the channel's process, and Committed, on
	// which the writers of conversations wait, needs mu.
	mu       sync.Mutex
	gw       *gateway.Gateway         // nil before Start
	agents   map[string]*plugin.Agent // by the plugin's name, like channels and failures
	channels map[string]*channel
	failures map[string]startFailure
	closed   bool
}

// startFailure says why Resume could not run a plugin.
type startFailure struct {
	kind string // of the plugin
	err  error
}

var (
	_ plugins.Runtime = (*Host)(nil)
	_ gateway.Watcher = (*Host)(nil)
)

// New returns a host without plugins. It is created before the gateway, of which it is a watcher.
func New(c Config) *Host {
	return &Host{cfg: c, agents: map[string]*plugin.Agent{}, channels: map[string]*channel{}, failures: map[string]startFailure{}}
}

// Configure implements [plugins.Runtime]. It checks that a plugin can be run, without starting it: its name is free, and the
// operator allows the variables that it wants. The check is repeated at each start of the gateway, because the configuration may have
// changed since the installation.
func (h *Host) Configure(p plugins.Plugin) error {
	if h.isTaken(p.Manifest.Name) {
		return fmt.Errorf("an agent named %s is configured already", p.Manifest.Name)
	}
	for _, n := range p.Manifest.Env {
		if !slices.Contains(h.cfg.Env, n) {
			return fmt.Errorf("it asks for the variable %s, which plugins.env does not allow", n)
		}
	}
	_, err := h.make(p)
	return err
}

// isTaken reports whether a name belongs to an agent that is not a plugin. The name of pushed turns is always taken.
func (h *Host) isTaken(name string) bool {
	there, ok := h.cfg.Roster.Agent(name, agent.Principal{})
	return name == gateway.PushAgent || ok && !h.owns(name, there)
}

// owns reports whether an agent of the roster is the plugin of that name. It returns false if a reload of the configuration has given the
// name to another agent since the plugin was started.
func (h *Host) owns(name string, there gateway.Agent) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.agents[name]
	return a != nil && there.Agent == agent.Agent(a)
}

// process supervises a plugin of either kind. *plugin.Agent and *channel implement it.
type process interface {
	// Check starts a process if none runs, and waits until it is ready.
	Check(ctx context.Context) error
	// State reports whether a process is ready, and if not, why the last one ended.
	State() (ready bool, reason error)
	// Start keeps a process running until Close, which returns when it has ended.
	Start(log *slog.Logger)
	Close()
}

// make creates the runner of a plugin without starting a process. A program that begins with ./ is relative to the plugin's
// folder; its path is made absolute, because the gateway's working directory is another one.
func (h *Host) make(p plugins.Plugin) (process, error) {
	m := p.Manifest
	c := plugin.Config{Command: slices.Clone(m.Command), Dir: p.Dir, Env: m.Env, Dialect: h.cfg.Dialect}
	if relative, ok := strings.CutPrefix(m.Command[0], "./"); ok {
		c.Command[0] = filepath.Join(p.Dir, filepath.FromSlash(relative))
	}
	if m.Kind == plugins.KindAgent {
		return plugin.New(c)
	}
	ch := &channel{name: m.Name, journal: h.cfg.Journal, log: h.cfg.Log.With("plugin", m.Name), record: &record{}, report: h.cfg.ReportFailure}
	var err error
	ch.Channel, err = plugin.NewChannel(c, ch.serve)
	return ch, err
}

// Try implements [plugins.Runtime]. It starts the plugin once, to check that it works, and ends it again.
func (h *Host) Try(ctx context.Context, p plugins.Plugin) error {
	runner, err := h.make(p)
	if err != nil {
		return err
	}
	return runner.Check(ctx)
}

// Resume runs a plugin that was installed before this start. If that fails, State returns the error until the plugin is run or
// stopped.
func (h *Host) Resume(p plugins.Plugin) error {
	err := h.Configure(p)
	if err == nil {
		err = h.Run(p)
	}
	if err != nil {
		h.mu.Lock()
		h.failures[p.Manifest.Name] = startFailure{p.Manifest.Kind, err}
		h.mu.Unlock()
	}
	return err
}

// Run implements [plugins.Runtime]. It replaces a running version of the plugin, which may be of the other kind. An old channel is closed
// before the new one opens, because both would store positions of the same chats. An old agent is replaced in the roster at once, so
// that no message finds the name unused. The plugin service calls Run and Stop one at a time.
func (h *Host) Run(p plugins.Plugin) error {
	runner, err := h.make(p)
	if err != nil {
		return err
	}
	name := p.Manifest.Name
	h.replacing.Lock()
	defer h.replacing.Unlock()
	h.mu.Lock()
	delete(h.failures, name)
	_, wasAgent := h.agents[name]
	old := h.channels[name]
	if h.closed {
		h.mu.Unlock()
		return gateway.ErrClosed
	}
	delete(h.agents, name)
	delete(h.channels, name)
	h.mu.Unlock()
	if old != nil {
		old.Close() // before the new one starts, which resumes at the positions that the old one stored
	}
	a, isAgent := runner.(*plugin.Agent)
	if !isAgent {
		if wasAgent {
			h.cfg.Roster.Remove(name)
		}
		c := runner.(*channel)
		if old != nil {
			c.record = old.record
		}
		return h.open(name, c)
	}
	if err := h.cfg.Roster.Replace(name, gateway.Agent{Agent: a, Silence: h.cfg.Silence, Kind: "plugin", Description: p.Manifest.Description}); err != nil {
		return err
	}
	h.mu.Lock()
	h.agents[name] = a
	h.mu.Unlock()
	return nil
}

// open adds a channel. It starts the channel if the gateway is running; otherwise Start does.
func (h *Host) open(name string, c *channel) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return gateway.ErrClosed
	}
	h.channels[name] = c
	if h.gw != nil {
		c.start(h.gw)
	}
	return nil
}

// Stop implements [plugins.Runtime]. It returns when a channel's process has ended. An agent is removed from the roster, unless the
// configuration has given its name to another agent meanwhile.
func (h *Host) Stop(name string) {
	there, ok := h.cfg.Roster.Agent(name, agent.Principal{})
	isAgent := ok && h.owns(name, there)
	h.replacing.Lock()
	defer h.replacing.Unlock()
	h.mu.Lock()
	c := h.channels[name]
	delete(h.failures, name)
	delete(h.agents, name)
	delete(h.channels, name)
	h.mu.Unlock()
	if isAgent {
		h.cfg.Roster.Remove(name)
	}
	if c != nil {
		c.Close()
	}
}

// Start starts the channels. The app calls it once, when the gateway accepts commands. Agents are started by the roster.
func (h *Host) Start(gw *gateway.Gateway) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gw = gw
	for _, c := range h.channels {
		c.start(gw)
	}
}

// Close ends the channels and waits until their processes have ended. Afterwards Run returns [gateway.ErrClosed].
func (h *Host) Close() {
	h.mu.Lock()
	h.closed = true
	channels := h.channels
	h.channels = map[string]*channel{}
	h.mu.Unlock()
	var tasks sync.WaitGroup
	for _, c := range channels {
		tasks.Go(c.Close)
	}
	tasks.Wait()
}

// State reports whether a plugin is ready, and if not, why. Both results are zero for an unknown plugin. For a plugin that Resume couldn't
// run, reason is the error of Resume.
func (h *Host) State(name string) (ready bool, reason error) {
	h.mu.Lock()
	var runner process
	if a := h.agents[name]; a != nil {
		runner = a
	} else if c := h.channels[name]; c != nil {
		runner = c
	}
	reason = h.failures[name].err
	h.mu.Unlock()
	if runner == nil {
		return false, reason
	}
	return runner.State()
}

// Committed implements [gateway.Watcher]. The chats that show the conversation are queued for delivery. Any conversation can be attached to
// a chat, so all channels are asked. The writer of the conversation waits for the call, so it only takes locks that are held briefly. The
// events are ignored: the delivery reads the conversation's feed, which merges everything since the last one.
func (h *Host) Committed(s *journal.Summary, _ []event.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.channels {
		c.committed(s.ID)
	}
}
