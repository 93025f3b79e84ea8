package channel

import (
	"context"
	"errors"
	"maps"
	"slices"
)

// runtime is a channel as one configuration makes it. A reload replaces it, but what has begun with it keeps it to its end: the
// delivery of a turn, the handling of a message.
type runtime struct {
	channel Channel
	options Options
	stop    context.CancelFunc // ends Run
	stopped chan struct{}      // closed when Run has returned for good
}

// newRuntime returns a runtime that doesn't receive yet.
func newRuntime(ch Channel, o Options) *runtime {
	return &runtime{channel: ch, options: o, stop: func() {}, stopped: make(chan struct{})}
}

// runtime returns the runtime for what begins now.
func (c *connector) runtime() *runtime {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newest
}

// run receives with the newest runtime until ctx ends. before, unless nil, is closed when another runtime has stopped: two
// at once would take each other's messages.
func (c *connector) run(ctx context.Context, before <-chan struct{}) {
	ctx, stop := context.WithCancel(ctx)
	c.mu.Lock()
	rt := c.newest
	rt.stop = stop
	c.mu.Unlock()
	c.pipeline.runs.Go(func() {
		defer close(rt.stopped)
		defer stop()
		if before != nil {
			<-before
		}
		c.receive(ctx, rt)
	})
}

// Replace adds a channel to a running pipeline, or replaces the one with its name. The pipeline must have started.
func (p *Pipeline) Replace(ctx context.Context, ch Channel, o Options) error {
	p.changing.Lock()
	defer p.changing.Unlock()
	p.mu.Lock()
	receiving, delivering := p.receiving, p.delivering
	c := p.connectors[ch.Name()]
	isNew := c == nil
	if isNew {
		c = newConnector(p, ch, o)
		p.connectors[ch.Name()] = c
	}
	p.mu.Unlock()
	if receiving == nil {
		return errors.New("channel: the pipeline does not run")
	}
	if isNew {
		p.cfg.Metrics.begin(ch.Name())
		if err := c.start(ctx, delivering); err != nil {
			return err
		}
		c.run(receiving, nil)
		return nil
	}
	c.mu.Lock()
	old := c.newest
	c.newest, c.delivering, c.isRemoved, c.runError = newRuntime(ch, o), delivering, false, nil
	chats := slices.Collect(maps.Values(c.chats))
	c.mu.Unlock()
	old.stop()
	c.run(receiving, old.stopped)
	for _, t := range chats { // what was committed while the channel was removed
		c.wake(t)
	}
	return nil
}

// Remove stops a channel of a running pipeline. Deliveries that have begun go on; others begin when a channel with this name is added
// again. The connector stays, because two of them could deliver the same turn.
func (p *Pipeline) Remove(name string) {
	p.changing.Lock()
	defer p.changing.Unlock()
	c := p.connector(name)
	if c == nil {
		return
	}
	c.mu.Lock()
	c.isRemoved, c.delivering = true, nil
	rt := c.newest
	c.mu.Unlock()
	rt.stop()
}

// connector returns the connector of a channel, or nil.
func (p *Pipeline) connector(name string) *connector {
	p.mu.RLock()
	c := p.connectors[name]
	p.mu.RUnlock()
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isRemoved {
		return nil
	}
	return c
}

// list returns the connectors of all channels, by name.
func (p *Pipeline) list() []*connector {
	p.mu.RLock()
	names := slices.Sorted(maps.Keys(p.connectors))
	p.mu.RUnlock()
	var list []*connector
	for _, name := range names {
		if c := p.connector(name); c != nil {
			list = append(list, c)
		}
	}
	return list
}
