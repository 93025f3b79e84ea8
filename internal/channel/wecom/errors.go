package wecom

import (
	"errors"
	"fmt"
	"time"

	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

var (
	// errUnknown means that a frame may have taken effect: it was sent, but not acknowledged.
	errUnknown = errors.New("wecom: no acknowledgement; the frame may have taken effect")
	// errUnsent means that a frame took no effect, because there is no connection.
	errUnsent = errors.New("wecom: no connection")
	// errUnsure means that a stream can't be updated any more and may show the answer.
	errUnsure = errors.New("wecom: the stream has expired and may show the answer")
	// errDisplaced means that another connection with the same bot was opened.
	errDisplaced = errors.New("wecom: another connection with the same bot was opened")
	// errSilent means that the platform doesn't acknowledge pings any more.
	errSilent = errors.New("wecom: pings are not acknowledged")
)

// The codes of the platform's errors.
const (
	codeBusy       = -1 // the platform is busy
	codeCredential = 40001
	codeBotID      = 40013
	codeRate       = 45009
	codeChatRate   = 846607
	codeRequest    = 846605 // the request id isn't that of a callback
	codeExpired    = 846608 // the stream can't be updated any more
	codeChat       = 93006
	codeRemoved    = 93008 // the bot isn't in the group any more
)

// ratePenalties are the waits after refusals because of too many messages. The platform doesn't say how long to wait; 30 messages a
// minute pass in one chat.
var ratePenalties = retry.Schedule{Initial: 10 * time.Second, Max: time.Minute}

// apiError is a refusal by the platform.
type apiError struct {
	Code    int
	Message string
}

func (e *apiError) Error() string { return fmt.Sprintf("wecom: code %d: %s", e.Code, e.Message) }

// code returns the code of a refusal, or 0.
func code(err error) int { return live.Refusal[apiError](err).Code }

// isRefused reports that the bot's id or secret is of no use.
func isRefused(err error) bool { return code(err) == codeCredential || code(err) == codeBotID }

// isExpired reports that a stream can't be updated any more.
func isExpired(err error) bool { return code(err) == codeRequest || code(err) == codeExpired }

// isRate reports that there are too many messages.
func isRate(err error) bool { return code(err) == codeRate || code(err) == codeChatRate }

// explain returns an error of a frame as [live.Chat] describes it.
func (t *chat) explain(err error) error {
	if !isRate(err) {
		t.refusals = 0
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errUnknown):
		return errors.Join(live.ErrUnknown, err)
	case errors.Is(err, errUnsent), code(err) == codeBusy:
		return errors.Join(live.ErrUnsent, err)
	case isRate(err):
		t.refusals++
		return &live.Penalty{Wait: ratePenalties.Wait(t.refusals), Err: err}
	case code(err) == codeChat, code(err) == codeRemoved, isRefused(err):
		return errors.Join(channel.ErrUnreachable, err)
	}
	return err
}

// repeatable returns the error of a frame that has no other effect if it is repeated.
func (t *chat) repeatable(err error) error {
	if errors.Is(err, errUnknown) {
		return errors.Join(live.ErrUnsent, err)
	}
	return t.explain(err)
}
