package voice

import (
	"fmt"
	"strings"
	"time"
)

// Reason says why an engine or a recogniser failed.
type Reason string

// The reasons of failures.
const (
	// NotInstalled says that the program isn't on this machine.
	NotInstalled Reason = "not-installed"
	// Credentials says that the API key is missing or wrong, or lacks a permission.
	Credentials Reason = "credentials"
	// Quota says that the account has no credit left. Waiting doesn't help.
	Quota Reason = "quota"
	// RateLimit says that there were too many requests. Failure.RetryAfter may say how long to wait.
	RateLimit Reason = "rate-limit"
	// Rejected says that the service refuses this request, such as an unknown voice, language or model.
	Rejected Reason = "rejected"
	// Unavailable says that the service can't be reached, fails or doesn't respond.
	Unavailable Reason = "unavailable"
	// Interrupted says that the audio or the connection ended too early.
	Interrupted Reason = "interrupted"
	// Format says that an answer can't be used.
	Format Reason = "format"
)

// messages say what happened and what to do, for each reason.
var messages = map[Reason]struct{ problem, advice string }{
	NotInstalled: {"the program is not installed", "install it, or configure another engine"},
	Credentials:  {"the API key was refused", "check the key and its permissions"},
	Quota:        {"the quota of the account is used up", "check the plan and the credit of the account"},
	RateLimit:    {"too many requests", "try again later, or raise the limit of the account"},
	Rejected:     {"the request was rejected", "check the model, the voice, the language and the URL"},
	Unavailable:  {"the service is unavailable", "try again later, and check the URL"},
	Interrupted:  {"the answer ended early", "try again"},
	Format:       {"the answer has an unsupported format", "check the URL; a speech service must send 16-bit mono PCM or WAV"},
}

// Failure is an error of a service or program that speaks or recognises speech.
type Failure struct {
	// Service is "speech" or "recognition".
	Service string
	// Engine is the name in the configuration.
	Engine string
	// Reason says what kind of failure it is, for programs.
	Reason Reason
	// Status is that of the HTTP response, or 0 without one.
	Status int
	// RetryAfter is how long the service asks to wait. It is 0 if the service doesn't say.
	RetryAfter time.Duration
	// Detail is the service's or program's own text, for operators. Its length is limited, and the API key is masked.
	Detail string

	// Err is the cause, or nil if the service itself reported the failure.
	Err error
}

// Error returns the problem, the service's text and what to do.
func (f *Failure) Error() string {
	m := messages[f.Reason]
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s: %s", f.Service, f.Engine, m.problem)
	if f.Status != 0 {
		fmt.Fprintf(&b, " (HTTP %d)", f.Status)
	}
	if f.Detail != "" {
		fmt.Fprintf(&b, ": %s", f.Detail)
	} else if f.Err != nil {
		fmt.Fprintf(&b, ": %v", f.Err)
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
func (f *Failure) Unwrap() error { return f.Err }

// Temporary reports whether the same request may succeed later.
func (f *Failure) Temporary() bool {
	return f.Reason == RateLimit || f.Reason == Unavailable || f.Reason == Interrupted
}
