package recognition

import (
	"fmt"
	"strings"
	"time"
)

// Reason says why a recognizer failed.
type Reason string

// The reasons of failures.
const (
	NotInstalled Reason = "not-installed" // the program is missing
	Credentials  Reason = "credentials"   // the API key is missing, wrong or lacks a permission
	Quota        Reason = "quota"         // the account has no credit left
	RateLimit    Reason = "rate-limit"    // too many requests
	Rejected     Reason = "rejected"      // the service refuses this request, such as an unknown voice or model
	Unavailable  Reason = "unavailable"   // the service can't be reached, fails or doesn't respond
	Interrupted  Reason = "interrupted"   // the connection ended early
	Format       Reason = "format"        // the answer can't be used
)

// messages say what happened and what to do, for each reason.
var messages = map[Reason]struct{ problem, advice string }{
	NotInstalled: {"the program is not installed", "install it, or configure another recognizer"},
	Credentials:  {"the API key was refused", "check the key and its permissions"},
	Quota:        {"the quota of the account is used up", "check the plan and the credit of the account"},
	RateLimit:    {"too many requests", "try again later, or raise the limit of the account"},
	Rejected:     {"the request was rejected", "check the model, the language and the URL"},
	Unavailable:  {"the service is unavailable", "try again later, and check the URL"},
	Interrupted:  {"the connection ended early", "try again"},
	Format:       {"the answer has an unknown format", "check the URL"},
}

// Failure is an error of a recognition service or program.
type Failure struct {
	Engine string // its name in Options
	Reason Reason
	Status int // of the HTTP response, or 0
	// RetryAfter is how long the service asks to wait. It is 0 if the service doesn't say.
	RetryAfter time.Duration
	// Detail is the service's or program's own text, for operators. Its length is limited, and the API key is masked.
	Detail string

	cause error
}

// Error returns the problem, the service's text and what to do.
func (f *Failure) Error() string {
	m := messages[f.Reason]
	var b strings.Builder
	fmt.Fprintf(&b, "recognition: %s: %s", f.Engine, m.problem)
	if f.Status != 0 {
		fmt.Fprintf(&b, " (HTTP %d)", f.Status)
	}
	if f.Detail != "" {
		fmt.Fprintf(&b, ": %s", f.Detail)
	} else if f.cause != nil {
		fmt.Fprintf(&b, ": %v", f.cause)
	}
	fmt.Fprintf(&b, "; %s", f.Advice())
	return b.String()
}

// Advice says what a person can do.
func (f *Failure) Advice() string {
	if f.RetryAfter > 0 {
		return fmt.Sprintf("try again in %v", f.RetryAfter.Round(time.Second))
	}
	return messages[f.Reason].advice
}

// Unwrap returns the cause, or nil.
func (f *Failure) Unwrap() error { return f.cause }

// Temporary reports whether the same request may succeed later.
func (f *Failure) Temporary() bool {
	return f.Reason == RateLimit || f.Reason == Unavailable || f.Reason == Interrupted
}
