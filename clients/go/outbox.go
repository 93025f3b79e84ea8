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
	client *Client
	dir    string
	told   func(Outgoing, Ack, error)

	mu      sync.Mutex
	waiting []Outgoing // the oldest first
	busy    map[string]bool
	wake    chan struct{} // one slot
}

// OpenOutbox returns the outbox of a folder, which one program at a time may use, with what was left in it; it is made where
// it is missing. Without a folder messages are kept in memory. told is called, from goroutines of Run, with what became of
// each message: its Ack, or the *Error with which it was refused.
func OpenOutbox(c *Client, dir string, told func(Outgoing, Ack, error)) (*Outbox, error) {
	o := &Outbox{client: c, dir: dir, told: told, busy: map[string]bool{}, wake: make(chan struct{}, 1)}
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
		o.waiting = append(o.waiting, m)
	}
	slices.SortFunc(o.waiting, func(a, b Outgoing) int { return a.At.Compare(b.At) })
	return o, nil
}

const outgoingSuffix = ".outgoing.json"

// Send takes a message. When it returns without an error the message is kept, and Run will bring it.
func (o *Outbox) Send(conversation, agent string, m Message) (Outgoing, error) {
	out := Outgoing{Key: rand.Text(), Conversation: conversation, Message: m, Agent: agent}
	if m.ID == "" {
		out.Message.ID = out.Key
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	out.At = time.Now().UTC()
	if n := len(o.waiting); n > 0 && !out.At.After(o.waiting[n-1].At) {
		out.At = o.waiting[n-1].At.Add(1) // the time is their order after a restart
	}
	if err := o.keep(out); err != nil {
		return Outgoing{}, err
	}
	o.waiting = append(o.waiting, out)
	o.wakeUp()
	return out, nil
}

// Waiting returns the messages that are on their way, the oldest first.
func (o *Outbox) Waiting() []Outgoing {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.waiting)
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
func (o *Outbox) idle() (all []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.waiting {
		if !o.busy[m.Conversation] {
			o.busy[m.Conversation] = true
			all = append(all, m.Conversation)
		}
	}
	return all
}

// next returns the first message of a conversation; without one the conversation is idle again.
func (o *Outbox) next(conversation string) (Outgoing, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.IndexFunc(o.waiting, func(m Outgoing) bool { return m.Conversation == conversation })
	if i < 0 {
		delete(o.busy, conversation)
		return Outgoing{}, false
	}
	return o.waiting[i], true
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
			if o.told != nil {
				o.told(m, ack, err)
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
func (o *Outbox) keep(m Outgoing) error {
	if o.dir == "" {
		return nil
	}
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("leat: outbox: %w", err)
	}
	whole := o.path(m.Key)
	part := strings.TrimSuffix(whole, outgoingSuffix) + ".part"
	if err := os.WriteFile(part, b, 0o600); err != nil {
		return fmt.Errorf("leat: outbox: %w", err)
	}
	if err := os.Rename(part, whole); err != nil {
		return fmt.Errorf("leat: outbox: %w", err)
	}
	return nil
}

func (o *Outbox) drop(m Outgoing) error {
	o.mu.Lock()
	o.waiting = slices.DeleteFunc(o.waiting, func(w Outgoing) bool { return w.Key == m.Key })
	o.mu.Unlock()
	if o.dir == "" {
		return nil
	}
	if err := os.Remove(o.path(m.Key)); err != nil {
		return fmt.Errorf("leat: outbox: %w", err)
	}
	return nil
}
