package agent

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"
)

// ErrNoCheck says that an agent can't tell whether it is there.
var ErrNoCheck = errors.New("agent: it can't be asked whether it is there")

// CheckLimit is how long an agent may take to say that it is there.
const CheckLimit = 10 * time.Second

// Check asks an agent whether it is there, for a bounded time. It returns nil, what is wrong, or ErrNoCheck.
func Check(ctx context.Context, a Agent) error {
	up, ok := a.(Checker)
	if !ok {
		return ErrNoCheck
	}
	limited, cancel := context.WithTimeout(ctx, CheckLimit)
	defer cancel()
	err := up.Check(limited)
	if err != nil && ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
		return errors.New("no answer within " + CheckLimit.String())
	}
	return err
}

// maxLine bounds what is told of an error in one line, in characters.
const maxLine = 300

// OneLine is what an error says, in one line.
func OneLine(err error) string {
	runes := []rune(strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " "))
	if len(runes) > maxLine {
		return string(runes[:maxLine-1]) + "…"
	}
	return string(runes)
}
