package fanout

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-dev/leat/internal/store/feed"
)

// slowWorkers is the number of workers that may wait for the log. They keep few requests to the journal under way, also if all viewers
// of a large crowd need one.
const slowWorkers = 16

// beatsPerInterval is how often in an interval the groups are checked for one that was silent. A heartbeat is early by at most this
// fraction.
const beatsPerInterval = 16

// Pool runs the viewers of a server. It has no end: its workers and its timer exist only while there are viewers. All methods are safe
// for concurrent use.
type Pool struct {
	heartbeat  time.Duration
	heartbeats map[feed.Encoding][]byte
	fast       lane
	slow       lane

	mu   sync.Mutex
	hubs map[hubKey]*hub
	// Nil without hubs.
	timer *time.Timer
}

// New returns a pool. After that time of silence, the viewers of an encoding get its frame of heartbeats; if it has none, their connections
// send heartbeats themselves.
func New(heartbeat time.Duration, frames map[feed.Encoding][]byte) *Pool {
	p := &Pool{heartbeat: heartbeat, heartbeats: frames, hubs: map[hubKey]*hub{}}
	p.fast.limit, p.slow.limit = runtime.GOMAXPROCS(0), slowWorkers
	return p
}

// lane is a queue of jobs and the workers that run them.
type lane struct {
	limit int

	mu      sync.Mutex
	queue   []*job
	workers int
}

// push queues a job. It starts a worker if there are fewer than the limit, because the others may be in the middle of a long job.
func (l *lane) push(j *job) {
	l.mu.Lock()
	l.queue = append(l.queue, j)
	start := l.workers < l.limit
	if start {
		l.workers++
	}
	l.mu.Unlock()
	if start {
		go l.work()
	}
}

// work runs jobs until the queue is empty.
func (l *lane) work() {
	for {
		l.mu.Lock()
		if len(l.queue) == 0 {
			l.queue = nil
			l.workers--
			l.mu.Unlock()
			return
		}
		j := l.queue[0]
		l.queue = l.queue[1:]
		l.mu.Unlock()
		j.execute(l == &j.pool.slow)
	}
}

// job is what a worker runs: a group or a viewer.
type job struct {
	pool   *Pool
	runner runner
	state  atomic.Int32
}

// runner is a group or a viewer as its job knows it.
type runner interface {
	// run does what can be done now. In the fast lane it returns true if it has to be run in the slow one.
	run(isSlow bool) (needsSlow bool)
}

// The states of a job.
const (
	jobIdle    = iota
	jobQueued  // in a lane
	jobRunning // by a worker
	jobWoken   // running, and woken meanwhile
)

// wake makes a worker run the job.
func (j *job) wake() {
	for {
		switch j.state.Load() {
		case jobIdle:
			if j.state.CompareAndSwap(jobIdle, jobQueued) {
				j.pool.fast.push(j)
				return
			}
		case jobRunning:
			if j.state.CompareAndSwap(jobRunning, jobWoken) {
				return
			}
		default:
			return
		}
	}
}

// execute runs the job, and queues it again if it needs the slow lane or was woken meanwhile.
func (j *job) execute(isSlow bool) {
	j.state.Store(jobRunning)
	if j.runner.run(isSlow) {
		j.state.Store(jobQueued)
		j.pool.slow.push(j)
		return
	}
	if !j.state.CompareAndSwap(jobRunning, jobIdle) {
		j.state.Store(jobQueued)
		j.pool.fast.push(j)
	}
}

// hub returns the hub of a feed and an encoding. It is created if necessary.
func (p *Pool) hub(f *feed.Feed, encoding feed.Encoding) *hub {
	key := hubKey{f, encoding}
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.hubs[key]
	if h == nil {
		h = &hub{pool: p, key: key}
		p.hubs[key] = h
		h.stop = f.Watch(h.wake)
		if p.timer == nil {
			p.timer = time.AfterFunc(p.heartbeat/beatsPerInterval, p.beat)
		}
	}
	return h
}

// remove forgets a hub without groups.
func (p *Pool) remove(h *hub) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hubs[h.key] == h {
		delete(p.hubs, h.key)
		h.stop()
	}
}

// beat wakes the groups that were silent for an interval, until the last hub is removed.
func (p *Pool) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.hubs) == 0 {
		p.timer = nil
		return
	}
	for _, h := range p.hubs {
		for _, g := range h.list() {
			if g.isSilent() {
				g.wake()
			}
		}
	}
	p.timer.Reset(p.heartbeat / beatsPerInterval)
}
