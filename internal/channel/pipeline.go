package channel

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Options configure one channel of a [Pipeline].
type Options struct {
	// Agent answers in new conversations. If it is empty, the gateway's default agent does.
	Agent string
	// Allow are the ids of the people who may talk to the channel, besides those whom an operator admits with a pairing code.
	Allow []string
	// AllMessages makes the agent answer every message in groups, and not only those that mention the bot or reply to it.
	AllMessages bool
}

// Config configures a [Pipeline]. Journal and Log are required.
type Config struct {
	Journal Journal
	Log     *slog.Logger
	// ReportFailure passes failures on to other programs. It may be nil.
	ReportFailure func(ctx context.Context, f StreamFailed) error
	// Voice transcribes and speaks. Its functions may be nil.
	Voice Voice
	// Metrics counts messages and deliveries. If it is nil, nothing is counted.
	Metrics *Metrics
}

// Pipeline connects channels with conversations. The calls are New, Add for each channel, Start, Shutdown. The other methods may
// be called concurrently between Start and Shutdown, and Committed at any time.
type Pipeline struct {
	cfg Config
	// delegate observes the deliveries of streamed turns, or is nil.
	delegate StreamDelegate
	voice    Voice
	store    store
	bus      *MessageBus
	gateway  *gateway.Gateway // set by Start, as files
	files    Files

	changing   sync.Mutex            // held while channels are replaced or removed, and when a shutdown begins
	mu         sync.RWMutex          // protects the fields below
	connectors map[string]*connector // by the channel's name, also those that a reload has removed
	rooms      map[string][]linked   // by conversation
	// The contexts of the channels' Run methods and of deliveries, between Start and Shutdown.
	receiving, delivering context.Context

	// turnMu is held for reading while a turn is delivered. Shutdown takes it for writing when it has ended the contexts of all
	// deliveries.
	turnMu sync.RWMutex
	// draining is closed when Shutdown begins: deliveries of turns that have not ended stop then.
	draining chan struct{}

	receive context.CancelFunc // ends the Run methods of the channels
	deliver context.CancelFunc // ends deliveries
	runs    sync.WaitGroup     // goroutines of Run
	tasks   sync.WaitGroup     // goroutines of deliveries
}

// linked is a chat that shows a conversation.
type linked struct {
	c *connector
	t *chat
}

// New returns a pipeline without channels. It is created before the gateway, of which it is a watcher.
func New(cfg Config) *Pipeline {
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics()
	}
	p := &Pipeline{
		cfg: cfg, voice: cfg.Voice, store: store{cfg.Journal}, connectors: map[string]*connector{}, rooms: map[string][]linked{}, draining: make(chan struct{}),
		receive: func() {}, deliver: func() {},
	}
	p.bus = NewMessageBus(p.handle, p.send)
	return p
}

// Add adds a channel. Names must be unique.
func (p *Pipeline) Add(ch Channel, o Options) {
	p.connectors[ch.Name()] = newConnector(p, ch, o)
	p.cfg.Metrics.begin(ch.Name())
}

// Observe sets the delegate. It is called before Start.
func (p *Pipeline) Observe(d StreamDelegate) { p.delegate = d }

// Start begins to receive and deliver. files may be nil; then files of people and agents are ignored. It continues what the
// previous process left: messages that were not handled, and turns that were not delivered.
func (p *Pipeline) Start(ctx context.Context, gw *gateway.Gateway, files Files) error {
	p.gateway, p.files = gw, files
	if err := p.store.open(ctx); err != nil {
		return err
	}
	receiving, receive := context.WithCancel(context.Background())
	delivering, deliver := context.WithCancel(context.Background())
	p.receive, p.deliver = receive, deliver
	p.mu.Lock()
	p.receiving, p.delivering = receiving, delivering
	p.mu.Unlock()
	for _, c := range p.list() {
		if err := c.start(ctx, delivering); err != nil {
			return err
		}
	}
	for _, c := range p.list() {
		c.run(receiving, nil)
	}
	return nil
}

// Shutdown stops the channels. Finals of turns that have ended are sent until ctx ends; other deliveries end at once and are
// continued by the next process. When it returns, no goroutine of the pipeline runs.
func (p *Pipeline) Shutdown(ctx context.Context) {
	close(p.draining)
	p.changing.Lock()
	p.mu.Lock()
	p.receiving, p.delivering = nil, nil
	p.mu.Unlock()
	p.changing.Unlock()
	for _, c := range p.list() {
		c.stop()
	}
	p.receive()
	p.runs.Wait()
	p.bus.Close(ctx)
	stop := context.AfterFunc(ctx, p.deliver)
	p.tasks.Wait()
	stop()
	p.deliver()
	p.turnMu.Lock() // a delivery that doesn't heed its context blocks here, and so does no harm to a store that is closed next
	defer p.turnMu.Unlock()
}

// Committed implements [gateway.Watcher]: it wakes the deliveries to the chats of a conversation.
func (p *Pipeline) Committed(s *journal.Summary, _ []event.Event) {
	p.mu.RLock()
	chats := p.rooms[s.ID]
	p.mu.RUnlock()
	for _, l := range chats {
		l.c.wake(l.t)
	}
}

// link makes commits of a conversation wake a chat. The list is copied, because Committed reads it without the lock.
func (p *Pipeline) link(conversation string, l linked) {
	p.mu.Lock()
	defer p.mu.Unlock()
	chats := p.rooms[conversation]
	p.rooms[conversation] = append(chats[:len(chats):len(chats)], l)
}

// unlink undoes link.
func (p *Pipeline) unlink(conversation string, l linked) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []linked
	for _, o := range p.rooms[conversation] {
		if o != l {
			list = append(list, o)
		}
	}
	if len(list) == 0 {
		delete(p.rooms, conversation)
	} else {
		p.rooms[conversation] = list
	}
}

// handle is called by the bus for each inbound message, also of a channel that was removed meanwhile.
func (p *Pipeline) handle(ctx context.Context, m InboundMessage) {
	p.mu.RLock()
	c := p.connectors[m.Channel]
	p.mu.RUnlock()
	c.handle(ctx, &m)
}

// send is called by the bus for each outbound message.
func (p *Pipeline) send(ctx context.Context, m OutboundMessage) {
	c := p.connector(m.Channel)
	if c == nil {
		return
	}
	if err := c.runtime().channel.Send(ctx, m); err != nil && ctx.Err() == nil {
		c.failed(ctx, nil, StreamFailed{Chat: m.ChatID, Err: err})
	}
}

// Send sends a message to a chat and returns when the platform has accepted it. Errors wrap [ErrUnknownChannel] if no channel has
// the name.
func (p *Pipeline) Send(ctx context.Context, m OutboundMessage) error {
	c := p.connector(m.Channel)
	if c == nil {
		return fmt.Errorf("%w: %q", ErrUnknownChannel, m.Channel)
	}
	return c.runtime().channel.Send(ctx, m)
}
