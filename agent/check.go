package agent

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"
)

// ErrNoCheck is returned by [Check] if the agent isn't a [Checker].
var ErrNoCheck = errors.New("agent: this kind of agent can't be checked")

// CheckLimit is the timeout of [Check] and [Kinds.Discover].
const CheckLimit = 10 * time.Second

// Check tests an agent's configuration and upstream, for at most [CheckLimit]. It returns nil if the agent works, and ErrNoCheck if the
// agent can't be tested.
func Check(ctx context.Context, a Agent) error {
	checker, ok := a.(Checker)
	if !ok {
		return ErrNoCheck
	}
	limited, cancel := context.WithTimeout(ctx, CheckLimit)
	defer cancel()
	err := checker.Check(limited)
	if err != nil && ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
		return errors.New("no answer within " + CheckLimit.String())
	}
	return err
}

// maxLine is the maximum length of [OneLine], in characters.
const maxLine = 300

// OneLine returns the text of an error without line breaks and control characters, shortened to 300 characters.
func OneLine(err error) string {
	runes := []rune(strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " "))
	if len(runes) > maxLine {
		return string(runes[:maxLine-1]) + "…"
	}
	return string(runes)
}
