package whatsapp

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/leat-dev/leat/internal/channel/live"
)

// errWindow means that only templates may be sent to the person.
var errWindow = errors.New("whatsapp: the person's last message is more than 24 hours old, so they have to write first")

// The codes of the API's errors (cloud-api/support/error-codes).
const (
	codeToken     = 190
	codeParameter = 100
	codeNumberMax = 130429 // messages of the number
	codeAccount   = 80007  // requests of the business account
	codeApp       = 4      // requests of the app
	codePair      = 131056 // messages to one person
	codeWindow    = 131047
	codeValue     = 131009
	codeMedia     = 131053 // the platform can't use a file
	// subcodeMissing comes with codeParameter if an object doesn't exist or isn't visible to the token.
	subcodeMissing = 33
)

// apiError is a refusal by the Cloud API.
type apiError struct {
	Status  int    `json:"-"`
	Code    int    `json:"code"`
	Subcode int    `json:"error_subcode"`
	Message string `json:"message"`
	Data    struct {
		Details string `json:"details"`
	} `json:"error_data"`
}

func (e *apiError) Error() string {
	text := fmt.Sprintf("whatsapp: HTTP %d, code %d: %s", e.Status, e.Code, e.Message)
	if e.Data.Details != "" {
		text += ": " + e.Data.Details
	}
	return text
}

// refusal returns an error as a refusal by the API, or an empty one.
func refusal(err error) *apiError { return live.Refusal[apiError](err) }

// isPair reports that messages to the person come too fast.
func isPair(err error) bool { return refusal(err).Code == codePair }

// isRate reports that requests of the number, the account or the app come too fast.
func isRate(err error) bool {
	switch e := refusal(err); e.Code {
	case codeNumberMax, codeAccount, codeApp:
		return true
	default:
		return e.Status == http.StatusTooManyRequests
	}
}

// isRefused reports that the token or the number is of no use. A limit of requests has the status 403 as well.
func isRefused(err error) bool {
	e := refusal(err)
	if isRate(err) {
		return false
	}
	isStatus := e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden
	isPermission := e.Code == codeToken || e.Code == 10 || 200 <= e.Code && e.Code <= 299
	return isStatus || isPermission || e.Code == codeParameter && e.Subcode == subcodeMissing
}

// isPassing reports that a refusal may not last: the server has a fault, or a part of it is overloaded or under maintenance.
func isPassing(err error) bool {
	if errors.Is(err, live.ErrUnsent) {
		return true
	}
	switch e := refusal(err); e.Code {
	case 1, 2, 131000, 131016, 131057, 133004:
		return true
	default:
		return e.Status >= http.StatusInternalServerError
	}
}

// isContextRefused reports that a message can't be a reply, for example because the person's message is too old.
func isContextRefused(err error) bool {
	e := refusal(err)
	return e.Code == codeValue || e.Code == codeParameter && e.Subcode == 0
}

// isTerminal reports that nothing can be sent to the person, for example because they have blocked the number.
func isTerminal(err error) bool {
	switch refusal(err).Code {
	case codeWindow, 368, 130497, 131021, 131026, 131030, 131031, 131045, 131048, 131050, 133010:
		return true
	}
	return isRefused(err)
}
