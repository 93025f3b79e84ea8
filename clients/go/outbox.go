package leat

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Outgoing is a message that was sent and is not acknowledged yet.
type Outgoing struct {
	Key          string    `json:"key"` // the message's idempotency key, and its id where it has none of its own
	Conversation string    `json:"conversation"`
	Message      Message   `json:"message"`
	Agent        string    `json:"agent,omitempty"`
	At           time.Time `json:"at"`
}

// Outbox brings a person's messages to the gateway: those of one conversation one after the other, each again and again with
// its key until it is acknowledged or refused. With a folder they outlive the program. Its methods may be called from several
// goroutines.
type Outbox struct {
	client   *Client
	dir      string
	onResult func(Outgoing, Ack, error)

	mu    sync.Mutex
	queue []Outgoing // the oldest first
	busy  map[string]bool
	wake  chan struct{} // one slot
}

// OpenOutbox returns the outbox of a folder, which one program at a time may use, with what was left in it; it is made where
// it is missing. Without a folder messages are kept in memory. told is called, from goroutines of Run, with what became of
// each message: its Ack, or the *Error with which it was refused.
func OpenOutbox(c *Client, dir string, onResult func(Outgoing, Ack, error)) (*Outbox, error) {
	o := &Outbox{client: c, dir: dir, onResult: onResult, busy: map[string]bool{}, wake: make(chan struct{}, 1)}
	if dir == "" {
		return o, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("leat: outbox: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"+outgoingSuffix))
	if err != nil {
		return nil, fmt.Errorf("leat: outbox: %w", err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, fmt.Errorf("leat: outbox: %w", err)
		}
		var m Outgoing
		if err := json.Unmarshal(b, &m); err != nil {
			return nil, fmt.Errorf("leat: outbox: %s: %w", f, err)
		}
		o.queue = append(o.queue, m)
	}
	slices.SortFunc(o.queue, func(a, b Outgoing) int { return a.At.Compare(b.At) })
	return o, nil
}

const outgoingSuffix = ".outgoing.json"

// Send takes a message. When it returns without an error the message is kept, and Run will bring it.
func (o *Outbox) Send(conversation, agent string, m Message) (Outgoing, error) {
	message := Outgoing{Key: rand.Text(), Conversation: conversation, Message: m, Agent: agent}
	if m.ID == "" {
		message.Message.ID = message.Key
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	message.At = time.Now().UTC()
	if n := len(o.queue); n > 0 && !message.At.After(o.queue[n-1].At) {
		message.At = o.queue[n-1].At.Add(1) // the time is their order after a restart
	}
	if err := o.save(message); err != nil {
		return Outgoing{}, err
	}
	o.queue = append(o.queue, message)
	o.wakeUp()
	return message, nil
}

// Waiting returns the messages that are on their way, the oldest first.
func (o *Outbox) Pending() []Outgoing {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.queue)
}

// Run brings messages until the context ends, and returns its cause. One Run at a time.
func (o *Outbox) Run(ctx context.Context) error {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	for {
		for _, c := range o.idle() {
			tasks.Go(func() { o.bring(ctx, c) })
		}
		select {
		case <-o.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// idle returns the conversations whose messages wait and are not being brought, and marks them as being so.
func (o *Outbox) idle() (conversations []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.queue {
		if !o.busy[m.Conversation] {
			o.busy[m.Conversation] = true
			conversations = append(conversations, m.Conversation)
		}
	}
	return conversations
}

// next returns the first message of a conversation; without one the conversation is idle again.
func (o *Outbox) next(conversation string) (Outgoing, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.IndexFunc(o.queue, func(m Outgoing) bool { return m.Conversation == conversation })
	if i < 0 {
		delete(o.busy, conversation)
		return Outgoing{}, false
	}
	return o.queue[i], true
}

// bring sends the messages of one conversation until there are none.
func (o *Outbox) bring(ctx context.Context, conversation string) {
	var wait backoff
	for {
		m, ok := o.next(conversation)
		if !ok {
			return
		}
		ack, err := o.client.Do(ctx, conversation, Command{Type: "send", Key: m.Key, Message: &m.Message, Agent: m.Agent})
		if err == nil || final(err) {
			err = errors.Join(err, o.drop(m))
			wait.reset()
			if o.onResult != nil {
				o.onResult(m, ack, err)
			}
			continue
		}
		if wait.sleep(ctx, err) != nil {
			o.mu.Lock()
			delete(o.busy, conversation) // for another Run
			o.mu.Unlock()
			return
		}
	}
}

// final reports whether the gateway has refused the message itself. A token that it does not take is no refusal.
func final(err error) bool {
	var e *Error
	return errors.As(err, &e) && !e.Temporary() && e.Status != 0 && e.Status != http.StatusUnauthorized
}

func (o *Outbox) wakeUp() {
	select {
	case o.wake <- struct{}{}:
	default: // Run has yet to look
	}
}

func (o *Outbox) path(key string) string { return filepath.Join(o.dir, key+outgoingSuffix) }

// keep writes a message to the folder, so that it is there whole or not at all.
func (o *Outbox) save(m Outgoing) error {
	if o.dir == "" {
		return nil
	}
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("leat: outbox: %w", err)
	}
	target := o.path(m.Key)
	part := strings.TrimSuffix(target, outgoingSuffix) + ".part"
	if err := os.WriteFile(part, b, 0o600); err != nil {
		return fmt.Errorf("leat: outbox: %w", err)
	}
	if err := os.Rename(part, target); err != nil {
		return fmt.Errorf("leat: outbox: %w", err)
	}
	return nil
}

func (o *Outbox) drop(m Outgoing) error {
	o.mu.Lock()
	o.queue = slices.DeleteFunc(o.queue, func(w Outgoing) bool { return w.Key == m.Key })
	o.mu.Unlock()
	if o.dir == "" {
		return nil
	}
	if err := os.Remove(o.path(m.Key)); err != nil {
		return fmt.Errorf("leat: outbox: %w", err)
	}
	return nil
}
