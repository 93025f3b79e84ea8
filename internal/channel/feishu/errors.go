package feishu

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

// The codes of the platform's errors.
const (
	codeRate     = 99991400
	codeChatRate = 230020
	codeSending  = 230049 // a request with the same uuid is being carried out
	codeClosed   = 300309 // the card doesn't stream
	codeSequence = 300317
)

var (
	// codesToken are those of an access token that isn't valid, and codesApp those of an app that doesn't exist or is disabled.
	codesToken = []int{99991663, 99991664, 99991671, 99991661, 99991668}
	codesApp   = []int{10003, 10014, 10015, 99991662, 99991673}
	// codesMissing are those of a message or a card that was withdrawn, or is too old to be changed.
	codesMissing = []int{230011, 230110, 230031, 230075, 300303, 300305, 200740}
	// codesCard are those of a card that the platform can't show.
	codesCard = []int{230099, 230025, 230028, 300301, 300302, 200621, 200861}
	// codesOutside are those of a chat that the bot can't write to.
	codesOutside = []int{230002, 230006, 230013, 230018, 230027, 230029, 230034, 230035, 230053}
)

// errLimited means that a request wasn't sent because the app has made too many.
var errLimited = errors.New("feishu: the app has made too many requests")

// apiError is a refusal by the platform.
type apiError struct {
	Status  int    `json:"-"`
	Code    int    `json:"code"`
	Message string `json:"msg"`
	// RetryAfter is how long the limit lasts, if there is one for the app.
	RetryAfter time.Duration `json:"-"`
}

func (e *apiError) Error() string {
	return fmt.Sprintf("feishu: HTTP %d, code %d: %s", e.Status, e.Code, e.Message)
}

// isToken reports that the access token isn't valid.
func (e *apiError) isToken() bool { return slices.Contains(codesToken, e.Code) }

// isLimit reports that the app has made too many requests.
func (e *apiError) isLimit() bool {
	return e.Code == codeRate || e.Status == http.StatusTooManyRequests
}

// refusal returns an error as a refusal by the platform, or an empty one.
func refusal(err error) *apiError { return live.Refusal[apiError](err) }

// has reports whether an error is a refusal with one of the codes.
func has(err error, codes ...int) bool {
	e := refusal(err)
	return e.Code != 0 && slices.Contains(codes, e.Code)
}

// isRefused reports that the app's id or secret is of no use.
func isRefused(err error) bool { return has(err, codesApp...) || has(err, codesToken...) }

// explain returns an error of the client as [live.Chat] describes it.
func explain(err error) error {
	switch e := refusal(err); {
	case err == nil:
		return nil
	case errors.Is(err, live.ErrUnknown):
		return errors.Join(live.ErrUnknown, err)
	case e.isLimit():
		return &live.Penalty{Wait: e.RetryAfter, IsGlobal: true, Err: err}
	case e.Code == codeChatRate, e.Code == codeSending:
		return &live.Penalty{Wait: time.Second, Err: err}
	case errors.Is(err, live.ErrUnsent), e.Status >= http.StatusInternalServerError:
		return errors.Join(live.ErrUnsent, err)
	case has(err, codesMissing...):
		return errors.Join(live.ErrMissing, err)
	case has(err, codesOutside...), isRefused(err):
		return errors.Join(channel.ErrUnreachable, err)
	}
	return err
}
