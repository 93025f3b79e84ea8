// What the routes for producers call: begin a pushed turn, attach to one, and ask how far it is.

package push

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// Service connects producers to the pushed turns of a gateway. Its methods may be called from several goroutines.
type Service struct {
	turns *openTurns
	gw    *gateway.Gateway
}

// NewService returns the service of a gateway that was made with turns.
func NewService(turns *openTurns, gw *gateway.Gateway) *Service {
	return &Service{turns: turns, gw: gw}
}

// Options describe a turn that a producer begins.
type Options struct {
	Dialect string // of the stream
	Answers string // id of the message that the turn answers; may be empty
	Key     string // idempotency key; a repeat attaches to the turn of the first call; may be empty
}

// Push begins a turn and attaches to it. If other turns of the conversation are unfinished, the turn waits in the queue, and Write
// blocks meanwhile. If only the attaching fails, the acknowledgement is returned with the error.
func (s *Service) Push(ctx context.Context, p gateway.Principal, conversation string, opt Options) (*Producer, gateway.Ack, error) {
	d, err := s.turns.dialects.Lookup(opt.Dialect)
	if err != nil {
		return nil, gateway.Ack{}, &gateway.Rejection{Reason: gateway.ReasonDialect, Message: err.Error()}
	}
	st := state{Dialect: d.Name}
	ack, err := s.gw.PushedTurns().Begin(ctx, p, conversation, gateway.NewPushed{Dialect: d.Name, Answers: opt.Answers, Key: opt.Key, State: st.appendJSON(nil)})
	if err != nil {
		return nil, ack, err
	}
	producer, err := s.attach(ctx, conversation, ack.Turn)
	return producer, ack, err
}

// Progress is the part of a pushed turn that is committed.
type Progress struct {
	Offset  int64 // bytes of the body whose events are committed
	Seq     int64 // of the conversation's last event; 0 if the turn has ended
	IsEnded bool
}

// Progress returns the committed part of a turn, after a flush of everything that was written before the call. A producer that lost its
// connection continues at the offset. If the turn has ended and its state is deleted, the error is [gateway.ErrTurnOver].
func (s *Service) Progress(ctx context.Context, p gateway.Principal, id string) (Progress, error) {
	conversation, t, err := s.pushable(ctx, p, id)
	if err != nil {
		return Progress{}, err
	}
	progress := Progress{IsEnded: !t.Unfinished()}
	if t.Unfinished() {
		if progress.Seq, err = s.gw.PushedTurns().Flush(ctx, conversation); err != nil {
			return Progress{}, err
		}
	}
	st, err := s.state(ctx, id)
	if errors.Is(err, journal.ErrNotFound) {
		if t.Unfinished() && t.Agent != gateway.PushAgent {
			return Progress{}, nil // the agent has not returned agent.PushPending yet
		}
		return Progress{IsEnded: true}, gateway.ErrTurnOver // the state is deleted with the end, which may just have been committed
	}
	progress.Offset = st.Offset
	return progress, err
}

// Attach connects a producer to a turn. It replaces the turn's current connection, whose next Write fails, because a producer often notices
// a lost connection before the gateway does.
func (s *Service) Attach(ctx context.Context, p gateway.Principal, id string) (*Producer, error) {
	conversation, t, err := s.pushable(ctx, p, id)
	if err != nil {
		return nil, err
	}
	if !t.Unfinished() {
		return nil, gateway.ErrTurnOver
	}
	return s.attach(ctx, conversation, id)
}

// pushable returns a turn that the principal may push, and its conversation. A turn whose stream comes from an agent is not found.
func (s *Service) pushable(ctx context.Context, p gateway.Principal, id string) (conversation string, t transcript.Turn, err error) {
	conversation, t, err = s.gw.Turn(ctx, p, gateway.ActionAgent, id)
	if err != nil {
		return "", t, err
	}
	if may, err := s.gw.PushedTurns().MayBePushed(ctx, conversation, id, t.Agent); err != nil || !may {
		return "", t, cmp.Or(err, gateway.ErrNotFound)
	}
	return conversation, t, nil
}

// attach adds a connection to a turn, and creates the turn's entry in memory if it has none, for example after a restart. The entry is
// created before the turn's state is checked: an end that is committed later finds the entry and closes it, and an end that was committed
// earlier is found by the check. A turn that is queued gets the stored state; a turn that runs continues from the state in memory,
// with a stream without the partial frame that the last connection may have left.
func (s *Service) attach(ctx context.Context, conversation, id string) (*Producer, error) {
	p := s.turns.turn(id)
	unfinished, err := s.gw.PushedTurns().IsUnfinished(ctx, conversation, id)
	if err != nil {
		return nil, err
	}
	if !unfinished {
		s.turns.end(p)
		return nil, gateway.ErrTurnOver
	}
	// This is read after p is in the table: as long as p has no run, the state doesn't change.
	st, err := s.state(ctx, id)
	if err != nil && !errors.Is(err, journal.ErrNotFound) { // not found: the agent has not returned agent.PushPending yet
		return nil, gateway.JournalError("state of pushed turn", err)
	}
	answers, err := s.gw.PushedTurns().UndeliveredAnswers(ctx, id)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range answers {
		p.addAnswer(a)
	}
	if p.run == nil {
		p.state = st
	} else if p.stream, err = p.state.restore(p.dialect); err != nil { // the last connection may have left part of a frame
		return nil, err
	}
	p.stopLease()
	p.fail = func(e *event.Error) {
		if err := s.gw.PushedTurns().FailQueued(s.turns.ctx, conversation, id, e); err != nil {
			s.turns.log.Warn("queued turn not ended", "conversation", conversation, "turn", id, "error", err)
		}
	}
	p.generation++
	return &Producer{Turn: id, Conversation: conversation, service: s, turn: p, generation: p.generation, acks: make(chan Ack, 1), isAcked: true}, nil
}

// state returns the stored state of a turn's stream.
func (s *Service) state(ctx context.Context, id string) (st state, err error) {
	v, err := s.turns.journal.Get(ctx, journalkey.TurnState(id))
	if err != nil {
		return st, err
	}
	return st, json.Unmarshal(v, &st)
}

// maxToken limits the size of a token that is looked up, in bytes.
const maxToken = 256

// TurnOf returns the id of the turn that the holder of a token may push, or "" if the token is not valid for any turn. Only digests of tokens
// are stored, and they are compared in constant time.
func (s *Service) TurnOf(ctx context.Context, token string) (id string, err error) {
	encoded, ok := strings.CutPrefix(token, tokenPrefix)
	if !ok {
		return "", nil
	}
	id, _, ok = strings.Cut(encoded, ".")
	if !ok || len(token) > maxToken {
		return "", nil
	}
	want, err := s.turns.journal.Get(ctx, journalkey.TurnToken(id))
	if errors.Is(err, journal.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", gateway.JournalError("look up token of turn", err)
	}
	digest := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(digest[:], want) != 1 {
		return "", nil
	}
	return id, nil
}
