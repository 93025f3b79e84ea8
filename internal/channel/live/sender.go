package live

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/leat-dev/leat/internal/base/retry"
)

// sendAgain are the waits after requests that failed for a reason that may pass. They grow to a minute, so that an outage of hours
// costs a few requests only, and an answer still arrives soon after it.
var sendAgain = retry.Schedule{Initial: time.Second, Max: time.Minute, Jitter: true}

// maxTries bounds the requests to change or delete one message at the end. It is for requests whose failure does no harm, such as
// deleting a card. A message of the answer has no such limit.
const maxTries = 8

// maxForms bounds the forms of one request that a chat tries. More would mean that the platform refuses each of them in turn.
const maxForms = 16

// sender makes the requests to one chat that have to succeed. It has no state, so Send and a delivery can have one each
// for the same chat.
type sender struct {
	bot  *Bot
	chat Chat
	gate *gate
}

// post creates a message that has to arrive and must not arrive twice. It waits out penalties and outages until ctx ends. Errors
// are that of ctx, an unknown outcome if the platform isn't idempotent, or a refusal.
func (s *sender) post(ctx context.Context, p Post) (id string, err error) {
	err = s.persist(ctx, func() (err error) {
		id, err = s.chat.Post(ctx, p)
		return err
	})
	return id, err
}

// persist repeats a request that creates a message until its outcome is known. If the platform isn't idempotent, an unknown outcome
// ends it, because a repetition could create a second message.
func (s *sender) persist(ctx context.Context, send func() error) error {
	return s.repeat(ctx, true, noLimit, s.bot.rules.Idempotent, send)
}

// noLimit is the number of tries of a request that brings the answer: it is repeated until the platform answers.
const noLimit = math.MaxInt

// insist repeats a request until it is answered, and gives up after that many failures. The request must have the same effect if it
// is repeated. The result is a refusal, the last failure, or the error of ctx.
func (s *sender) insist(ctx context.Context, isMessage bool, tries int, send func() error) error {
	err := s.repeat(ctx, isMessage, tries, true, send)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// repeat repeats a request until it succeeds, is refused, has failed that many times, or ctx ends. isIdempotent means that it may be
// repeated if its outcome is unknown.
func (s *sender) repeat(ctx context.Context, isMessage bool, tries int, isIdempotent bool, send func() error) error {
	for failed, forms := 0, 0; ; {
		err := s.gate.pass(ctx, isMessage, send)
		switch {
		case err == nil, ctx.Err() != nil, errors.Is(err, ErrUnknown) && !isIdempotent:
			return err
		case penalty(err) != nil: // the gate waits
		case errors.Is(err, ErrRepeat):
			if forms++; forms > maxForms {
				return err
			}
		case errors.Is(err, ErrUnsent), errors.Is(err, ErrUnknown):
			if failed++; failed > tries {
				return err
			}
			if err := retry.Sleep(ctx, sendAgain.Wait(failed)); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// isUnknown reports whether a message was possibly delivered, and not because ctx has ended. If ctx has ended, the next delivery
// finds out from the state, so nothing is recorded.
func isUnknown(ctx context.Context, err error) bool {
	return errors.Is(err, ErrUnknown) && ctx.Err() == nil
}

// partKey returns the key of one of the messages that belong to a key. An empty key stays empty: the channel then makes a random one
// for each message.
func partKey(key string, n int) string {
	if key == "" {
		return ""
	}
	return key + "/" + strconv.Itoa(n)
}
