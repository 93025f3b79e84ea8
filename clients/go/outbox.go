// Messages that are sent even if the gateway can't be reached at first: they are in a file until they are acknowledged.

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

// Outgoing is a message that the gateway hasn't acknowledged yet.
type Outgoing struct {
	Key          string    `json:"key"` // the message's idempotency key, and its id if the message has none
	Conversation string    `json:"conversation"`
	Message      Message   `json:"message"`
	Agent        string    `json:"agent,omitempty"`
	At           time.Time `json:"at"`
}

// Outbox delivers a user's messages to the gateway. The messages of a conversation are sent in order, one at a time, each with its key
// until the gateway acknowledges or refuses it. With a folder, unsent messages survive a restart of the program. Its methods may be called
// from several goroutines.
type Outbox struct {
	client   *Client
	dir      string
	onResult func(Outgoing, Ack, error)

	mu    sync.Mutex
	queue []Outgoing // oldest first
	busy  map[string]bool
	wake  chan struct{} // buffered, capacity 1
}

// OpenOutbox opens the outbox in a folder, with the messages left in it, and creates the folder if needed. Only one program at a time may
// use a folder. If folder is empty, messages are stored in memory only. The callback gets the result of each message: its Ack, or the
// *Error with which the gateway refused it. It is called from goroutines of Run.
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

// Send adds a message to the outbox. If it returns nil, the message is stored (on disk if there is a folder), and Run will send it.
func (o *Outbox) Send(conversation, agent string, m Message) (Outgoing, error) {
	message := Outgoing{Key: rand.Text(), Conversation: conversation, Message: m, Agent: agent}
	if m.ID == "" {
		message.Message.ID = message.Key
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	message.At = time.Now().UTC()
	if n := len(o.queue); n > 0 && !message.At.After(o.queue[n-1].At) {
		message.At = o.queue[n-1].At.Add(1) // after a restart, the messages are sorted by time
	}
	if err := o.save(message); err != nil {
		return Outgoing{}, err
	}
	o.queue = append(o.queue, message)
	o.wakeUp()
	return message, nil
}

// Pending returns the messages that haven't been acknowledged, oldest first.
func (o *Outbox) Pending() []Outgoing {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.queue)
}

// Run sends messages until ctx is done and returns the context's cause. Only one Run may be active at a time.
func (o *Outbox) Run(ctx context.Context) error {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	for {
		for _, c := range o.idle() {
			tasks.Go(func() { o.deliver(ctx, c) })
		}
		select {
		case <-o.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// idle returns the conversations that have messages but no goroutine that sends them, and marks them as busy.
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

// next returns the first message of a conversation. If there is none, it marks the conversation as idle.
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

// deliver sends the messages of one conversation in order until it has none. A message is removed only after the gateway has acknowledged or
// refused it; other failures, such as a lost connection, are retried without a limit. The callback runs before the next message is sent.
func (o *Outbox) deliver(ctx context.Context, conversation string) {
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
			delete(o.busy, conversation) // so that a later Run sends the rest
			o.mu.Unlock()
			return
		}
	}
}

// final reports whether the gateway has refused the message itself. A refused token isn't final: a later token may be accepted.
func final(err error) bool {
	var e *Error
	return errors.As(err, &e) && !e.Temporary() && e.Status != 0 && e.Status != http.StatusUnauthorized
}

func (o *Outbox) wakeUp() {
	select {
	case o.wake <- struct{}{}:
	default: // Run hasn't yet received the last wake-up
	}
}

func (o *Outbox) path(key string) string { return filepath.Join(o.dir, key+outgoingSuffix) }

// save writes a message to the folder atomically, so that OpenOutbox never finds half a message. It doesn't sync the file: messages survive a
// killed program, but not always a power failure.
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

// drop removes a message from the queue and the folder. If the file can't be removed, the next OpenOutbox sends the message again;
// the gateway recognizes its key.
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
