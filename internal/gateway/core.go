package gateway

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/service/usage"
	"github.com/leat-dev/leat/internal/store/feed"
)

// core is what a gateway's conversations share: the stores, the configuration, and the goroutines that work for all of them. Each
// [writer] refers to it, and so do the parts above the writers. It knows no writer itself, so nothing in it can wait for one.
type core struct {
	// As given to New; the settings that Adjust may change since then are in liveSettings.
	cfg          Config
	liveSettings atomic.Pointer[Settings]
	log          *slog.Logger
	journal      Journal
	feeds        *feed.Registry

	// Ends when the gateway has drained.
	life context.Context
	end  context.CancelFunc
	// Every goroutine of the gateway.
	tasks tasks

	positions   positions
	presence    presence
	compactor   *compactor
	undos       *undos
	reopen      *reopener
	audit       *audit.Log
	holds       *Holds
	quota       *quota.Quota
	limits      limits
	removals    *removals
	metrics     *Metrics
	ledger      *usage.Ledger
	attachments Attachments
	pusher      Pusher
	// sessions is notified of changes that agents which follow their sessions have to know. It is set before the first writer is opened.
	sessions sessionObserver
}

// sessionObserver is notified, by the goroutine of a conversation's writer, of changes to the sessions that agents keep for it. Its
// methods return at once.
type sessionObserver interface {
	// sessionChanged is called when an agent's session was stored, replaced or deleted.
	sessionChanged(agentName, conversation string)
	// conversationLost is called when a conversation was deleted, or when it is unknown whether its last commit succeeded.
	conversationLost(conversation string)
}

// newCore returns the core of a gateway. cfg has its defaults.
func newCore(cfg Config) *core {
	c := &core{
		cfg: cfg, log: cfg.Log, journal: cfg.Journal, metrics: cfg.Metrics, attachments: cfg.Attachments, pusher: cfg.Pusher,
		feeds:  feed.NewRegistry(feedLog{cfg.Journal}, feed.Config{}),
		audit:  audit.New(cfg.Journal, cfg.Log),
		ledger: usage.New(cfg.Journal, cfg.Prices, cfg.UsageRetention),
		quota: quota.New(quota.Options{User: cfg.User, Tenant: cfg.Tenant, StoredBytes: func(tenant, owner string) (int64, int64) {
			logs, logsTenant := cfg.Journal.StoredBytes(tenant, owner)
			files, filesTenant := cfg.Attachments.StoredBytes(tenant, owner)
			return logs + files, logsTenant + filesTenant
		}}),
	}
	c.liveSettings.Store(&cfg.Settings)
	c.life, c.end = context.WithCancel(context.Background())
	c.limits = limits{c.quota, c.metrics, c.journal}
	c.compactor = newCompactor(c.life, c.journal, c.feeds, c.log)
	c.undos = &undos{compactor: c.compactor, pending: map[string]undo{}}
	c.holds = &Holds{journal: c.journal, audit: c.audit, byKey: map[string]Hold{}}
	c.removals = &removals{
		journal: c.journal, feeds: c.feeds, audit: c.audit, holds: c.holds, compactor: c.compactor, captures: cfg.Raw, attachments: cfg.Attachments,
		log: c.log,
	}
	return c
}

// settings returns the settings that apply now. A caller that needs several of them calls it once, so that they fit each other.
func (c *core) settings() *Settings { return c.liveSettings.Load() }

// agent returns the agent that a principal knows under a name. Every principal may use the gateway's own agent for pushed turns.
func (c *core) agent(name string, p agent.Principal) (Agent, bool) {
	if name == PushAgent {
		return Agent{Silence: -1, Kind: PushAgent}, true
	}
	return c.cfg.Agents.Agent(name, p)
}

// tasks are the goroutines of a gateway. Unlike with a sync.WaitGroup, a caller that isn't a task may call Go at any time: once wait has
// returned, nothing starts. The zero value is ready for use.
type tasks struct {
	mu sync.Mutex
	// Running.
	n int
	// Wait was called.
	isOver bool
	// Made by wait; closed when the last one has returned.
	exit chan struct{}
}

// Go runs fn in a goroutine. It returns false, and does nothing, if wait was called and no task runs any more. So it always succeeds in
// a task.
func (ts *tasks) Go(fn func()) bool {
	if !ts.begin() {
		return false
	}
	go func() {
		defer ts.finish()
		fn()
	}()
	return true
}

// begin adds a task without a goroutine; its last call is finish. It returns false if Go would.
func (ts *tasks) begin() bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.isOver && ts.n == 0 {
		return false
	}
	ts.n++
	return true
}

// finish ends a task.
func (ts *tasks) finish() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.n--; ts.n == 0 && ts.isOver {
		close(ts.exit)
	}
}

// wait returns when no task runs. It is called once.
func (ts *tasks) wait() {
	ts.mu.Lock()
	ts.isOver, ts.exit = true, make(chan struct{})
	n := ts.n
	ts.mu.Unlock()
	if n > 0 {
		<-ts.exit
	}
}
