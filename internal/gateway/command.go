package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Command changes a conversation. Which fields count depends on Type.
type Command struct {
	Type string `json:"type"`
	// Key makes a repeat harmless: the same key gets the outcome of the first, with another body a conflict.
	Key string `json:"key,omitempty"`

	Message *CommandMessage `json:"message,omitempty"` // send, inject
	Agent   string          `json:"agent,omitempty"`   // send: another agent than the conversation's
	Queue   bool            `json:"queue,omitempty"`   // send: a turn of its own, also where the running one could take the message

	Turn    string `json:"turn,omitempty"`    // stop, answer
	Request string `json:"request,omitempty"` // answer
	// Decision and Text answer a request.
	Decision event.Decision `json:"decision,omitempty"`
	Text     string         `json:"text,omitempty"`

	// After is the last message that a truncate leaves; empty drops everything.
	After string `json:"after,omitempty"`

	Title    *string                    `json:"title,omitempty"`    // update
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"` // update

	Subject string `json:"subject,omitempty"` // share, unshare: with whom; Everybody is the whole tenant
	Access  string `json:"access,omitempty"`  // share: read or write

	by      audit.Actor          // whoever gave it
	missing map[int]*event.Error // why a part of the message has no file, by its place among the parts
	taken   bool                 // the message's id is that of one that is not in memory
}

// CommandMessage is the message of a send or an inject.
type CommandMessage struct {
	ID     string        `json:"id,omitempty"` // chosen by the client, or made
	Role   event.Role    `json:"role,omitempty"`
	Text   string        `json:"text,omitempty"`
	Parts  []event.Part  `json:"parts,omitempty"`
	Author *event.Author `json:"author,omitempty"`
	Source string        `json:"source,omitempty"`
}

// The types of commands.
const (
	CommandSend     = "send"     // say something; a turn answers it
	CommandStop     = "stop"     // end a turn
	CommandAnswer   = "answer"   // answer a request that a turn waits on
	CommandInject   = "inject"   // add a message that nothing answers
	CommandTruncate = "truncate" // drop the messages after one
	CommandUpdate   = "update"   // set title and metadata
	CommandDelete   = "delete"   // drop the whole conversation
	CommandShare    = "share"    // let another subject read or write
	CommandUnshare  = "unshare"  // take that back
)

// Ack says at which seq a command took effect.
type Ack struct {
	Seq     int64              `json:"seq"`
	Message string             `json:"message,omitempty"` // id of the message that it added
	Turn    string             `json:"turn,omitempty"`    // id of the turn that it started, queued, steered, ended or answered
	State   event.MessageState `json:"state,omitempty"`   // of the message: started, queued or steered
	// Repeated says that the key was known, and that this is the outcome of the first time.
	Repeated bool `json:"repeated,omitempty"`
	// AlreadyEnded says that the turn had ended before the stop.
	AlreadyEnded bool `json:"already_ended,omitempty"`
	Deleted      int  `json:"deleted,omitempty"` // how many messages a truncate dropped
}

// storedOutcome is the value of a command's idempotency key.
type storedOutcome struct {
	Hash string `json:"hash"`
	Ack  Ack    `json:"ack"`
}

// Do carries a command out. A refusal is a *Rejection; other errors are ErrNotFound, ErrForbidden, ErrUnavailable, or
// the context's: then the command may have been taken, and a repeat with the same key tells.
func (g *Gateway) Do(ctx context.Context, p Principal, conversation string, c Command) (Ack, error) {
	action, ok := map[string]Action{
		CommandSend: ActionWrite, CommandStop: ActionWrite, CommandAnswer: ActionWrite, CommandTruncate: ActionWrite,
		CommandUpdate: ActionWrite, CommandInject: ActionAgent, CommandDelete: ActionDelete, CommandShare: ActionShare, CommandUnshare: ActionShare,
	}[c.Type]
	if !ok {
		return Ack{}, reject(ReasonInvalid, "unknown command type %q", c.Type)
	}
	if err := event.CheckID("key", c.Key); err != nil {
		return Ack{}, reject(ReasonInvalid, "%v", err)
	}
	w, err := g.writer(ctx, conversation)
	if errors.Is(err, ErrDamaged) {
		if c.Type == CommandDelete {
			return g.removals.deleteDamaged(ctx, p, conversation, c)
		}
		if _, serr := g.Conversation(ctx, p, action, conversation); serr != nil {
			err = serr
		}
	}
	if err != nil {
		return Ack{}, err
	}
	defer w.release()
	s := w.info()
	if err := Decide(p, action, &s); err != nil {
		return Ack{}, err
	}
	if g.Draining() && c.Type == CommandSend {
		return Ack{}, reject(ReasonDraining, "the gateway is stopping; try again in a moment")
	}
	c.by = By(ctx, p)
	if c.taken, err = w.isOldMessageID(ctx, c.Message); err != nil {
		return Ack{}, err
	}
	if c.Message != nil {
		m, missing, err := g.attachments.Receive(ctx, w, p, *c.Message)
		if err != nil {
			return Ack{}, err
		}
		c.Message, c.missing = &m, missing
	}
	switch c.Type {
	case CommandSend:
		return commands{w}.send(ctx, p, asGuest(p, &s, c))
	case CommandStop:
		return w.keyed(ctx, c, func(t *tx) (Ack, error) { return commands{w}.stop(t, c.Turn, p) })
	case CommandAnswer:
		return commands{w}.answer(ctx, p, c)
	case CommandInject:
		return w.keyed(ctx, c, func(t *tx) (Ack, error) { return commands{w}.inject(ctx, t, p, c) })
	case CommandTruncate:
		return g.removals.run(ctx, s, c, func(func()) (Ack, error) { return commands{w}.truncate(ctx, c) })
	case CommandShare:
		return w.keyed(ctx, c, func(t *tx) (Ack, error) { return commands{w}.share(t, c) })
	case CommandUnshare:
		return w.keyed(ctx, c, func(t *tx) (Ack, error) { return commands{w}.unshare(t, c) })
	case CommandUpdate:
		return w.keyed(ctx, c, func(t *tx) (Ack, error) { return commands{w}.update(t, p, c) })
	}
	return g.removals.run(ctx, s, c, func(release func()) (Ack, error) { return commands{w}.delete(ctx, c, nil, release) })
}

// keyed runs a command alone in its own commit, together with its key.
func (w *writer) keyed(ctx context.Context, c Command, do func(*tx) (Ack, error)) (Ack, error) {
	var ack Ack
	err := w.submit(ctx, true, func(t *tx) error {
		known, err := w.storedOutcome(ctx, c)
		if err != nil || known != nil {
			if known != nil {
				ack = known.Ack
				ack.Repeated = true
				w.metrics.Repeated.Inc()
			}
			return err
		}
		if ack, err = do(t); err != nil {
			return err
		}
		if err := w.note(t, c, ack); err != nil {
			return err
		}
		return w.remember(t, c, ack)
	})
	if err != nil {
		return Ack{}, commandError(err) // ack is the job's still where the context has ended
	}
	return ack, nil
}

// storedOutcome returns the outcome that is stored under a command's key, nil if the key is new. If it was used with another body, the
// error is a *Rejection.
func (w *writer) storedOutcome(ctx context.Context, c Command) (*storedOutcome, error) {
	if c.Key == "" {
		return nil, nil
	}
	v, err := w.g.journal.Get(ctx, journalkey.Command(w.id, c.Type, c.Key))
	if errors.Is(err, journal.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for key: %w", err)
	}
	var d storedOutcome
	if err := json.Unmarshal(v, &d); err != nil {
		return nil, fmt.Errorf("stored key: %w", err)
	}
	if d.Hash != c.hash() {
		return nil, reject(ReasonConflict, "key %q was used with another body", c.Key)
	}
	return &d, nil
}

func (w *writer) remember(t *tx, c Command, ack Ack) error {
	if c.Key == "" {
		return nil
	}
	v, err := json.Marshal(storedOutcome{Hash: c.hash(), Ack: ack})
	if err != nil {
		return err
	}
	expires := int64(0) // a message's key lives as long as its conversation
	if c.Type != CommandSend {
		expires = expiryAfter(w.g.cfg.KeyLife)
	}
	t.set(journalkey.Command(w.id, c.Type, c.Key), v, expires)
	return nil
}

func (c Command) hash() string {
	c.Key = ""
	b, err := json.Marshal(c)
	if err != nil {
		return "" // it came from JSON or from Go values that have a JSON form
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// commandError leaves refusals as they are and translates the rest.
func commandError(err error) error {
	var r *Rejection
	if err == nil || errors.As(err, &r) || errors.Is(err, ErrUnavailable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, event.ErrInvalid) {
		return reject(ReasonInvalid, "%v", err)
	}
	return JournalError("command", err)
}
