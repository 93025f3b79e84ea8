package channel

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/base/retry"
)

// connector runs one channel: it takes its messages in and delivers to its chats.
type connector struct {
	pipeline *Pipeline
	name     string
	inbox    inbox
	access   access
	log      *slog.Logger

	mu         sync.Mutex // protects the fields below, and those of the chats
	newest     *runtime
	isRemoved  bool            // by a reload
	delivering context.Context // of deliveries; nil before start, after stop, and while the channel is removed
	chats      map[string]*chat
	// refused is why Run has ended, and nil while it runs. lastError is the newest error of a delivery, and failedAt its time.
	runError, lastError error
	failures            int
	failedAt            time.Time
}

// chat is a chat of a channel. Its bindings are changed only by the goroutine that delivers.
type chat struct {
	id        string
	bindings  []*binding // in the order in which they were bound; the last is the current one
	isRunning bool       // a goroutine delivers
	dirty     bool       // something was committed since that goroutine last looked
	// replies are the platform's ids of messages by their ids in the conversation, until their turns are delivered.
	replies map[string]string
}

// newConnector returns the connector of a channel, which is not started.
func newConnector(p *Pipeline, ch Channel, o Options) *connector {
	name := ch.Name()
	return &connector{
		pipeline: p, name: name, newest: newRuntime(ch, o), log: p.cfg.Log.With("channel", name), chats: map[string]*chat{},
		inbox: inbox{store: p.store, channel: name}, access: access{store: p.store, channel: name},
	}
}

// start restores the chats of the channel, delivers what is left to them, and queues the messages that were not handled. Those
// are added to the lanes without waiting for space, because nothing else publishes yet.
func (c *connector) start(ctx, delivering context.Context) error {
	c.mu.Lock()
	c.delivering = delivering
	c.mu.Unlock()
	byChat, err := c.bindings(ctx)
	if err != nil {
		return err
	}
	for id, bindings := range byChat {
		t := c.chatNamed(id)
		t.bindings = bindings
		for _, b := range bindings {
			c.pipeline.link(b.Conversation, linked{c, t})
		}
		c.wake(t)
	}
	messages, err := c.inbox.remaining(ctx)
	if err != nil {
		return err
	}
	for _, m := range messages {
		if err := c.pipeline.bus.PublishInbound(ctx, *m); err != nil {
			return err
		}
	}
	return nil
}

// stop prevents further deliveries from beginning.
func (c *connector) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delivering = nil
}

// runAgain is the wait before a channel is run again after an error.
var runAgain = retry.Schedule{Initial: time.Second, Max: time.Minute}

// receive keeps a channel running until ctx ends.
func (c *connector) receive(ctx context.Context, rt *runtime) {
	for failures := 1; ; failures++ {
		err := rt.channel.Run(ctx, c)
		if ctx.Err() != nil {
			return
		}
		c.setRunError(err)
		wait := runAgain.Wait(failures)
		c.log.Error("channel has stopped; it will be started again", "wait", wait, "error", err)
		if retry.Sleep(ctx, wait) != nil {
			return
		}
		c.setRunError(nil)
	}
}

// setRunError notes why the channel's Run has ended, for its state. It is nil while Run works.
func (c *connector) setRunError(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runError = err
}

// chatNamed returns the chat with that id, which it creates if necessary.
func (c *connector) chatNamed(id string) *chat {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.chats[id]
	if t == nil {
		t = &chat{id: id, replies: map[string]string{}}
		c.chats[id] = t
	}
	return t
}

// current returns the binding that messages of people go to, or nil.
func (c *connector) current(t *chat) *binding {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(t.bindings) == 0 {
		return nil
	}
	return t.bindings[len(t.bindings)-1]
}

// bind begins a conversation with an agent for a chat, which becomes its current one. key makes a repeated call find the
// conversation of the first.
func (c *connector) bind(ctx context.Context, t *chat, key, agent string) (*binding, error) {
	b, err := c.create(ctx, t.id, key, agent)
	if err != nil {
		return nil, err
	}
	if o := c.bindingOf(t, b.Conversation); o != nil { // its deliveries have progressed since, so it must not be replaced
		return o, nil
	}
	return b, c.add(ctx, t, b)
}

// forget removes a binding whose conversation was deleted, or which is of no use any more.
func (c *connector) forget(t *chat, b *binding) {
	c.pipeline.unlink(b.Conversation, linked{c, t})
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, o := range t.bindings {
		if o == b {
			t.bindings = append(t.bindings[:i:i], t.bindings[i+1:]...)
			return
		}
	}
}

// Receive implements [Inbox]. Messages in groups that aren't meant for the agent are dropped. If too many messages of the chat
// wait, the person gets a reply that says so.
func (c *connector) Receive(ctx context.Context, m InboundMessage) error {
	m.Channel = c.name
	if m.ID == "" || m.ChatID == "" || m.SenderID == "" {
		return errors.New("channel: a message needs an id, a chat and a sender")
	}
	if m.Hints.Group && !m.Hints.Addressed && !c.runtime().options.AllMessages {
		return nil
	}
	isNew, err := c.inbox.add(ctx, &m)
	if err != nil || !isNew {
		return err
	}
	c.pipeline.cfg.Metrics.messages.WithLabelValues(c.name).Inc()
	err = c.pipeline.bus.TryPublishInbound(m)
	if !errors.Is(err, ErrBusy) {
		return nil // a closed bus: the next process handles the message
	}
	if err := c.inbox.finish(ctx, &m); err != nil {
		return err
	}
	c.pipeline.bus.tryReply(&m, textBusy)
	return nil
}

// Fail implements [FailureInbox].
func (c *connector) Fail(ctx context.Context, chatID string, err error) {
	c.mu.Lock()
	t := c.chats[chatID]
	c.mu.Unlock()
	var b *binding
	if t != nil {
		b = c.current(t)
	}
	c.failed(ctx, b, StreamFailed{Chat: chatID, Err: err})
}
