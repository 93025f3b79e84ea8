// The end of an answer in the forms of Eliza's clients: the last frame, the reply as a whole, and errors.

package eliza

import (
	"cmp"
	"strings"

	"github.com/leat-dev/leat/event"
)

// outcome describes a turn that has ended, without its text.
type outcome struct {
	AgentName             string   `json:"agentName"`
	MessageID             string   `json:"messageId,omitempty"`
	UserMessageID         string   `json:"userMessageId,omitempty"`
	Usage                 *usage   `json:"usage,omitempty"`
	ActionCallbackHistory []string `json:"actionCallbackHistory,omitempty"`
	// FailureKind is one of the kinds below if the turn failed or was interrupted, and NoResponseReason is
	// "ignored" if it completed without visible content. A client shows a notice for either, and none if
	// both are empty.
	FailureKind      string       `json:"failureKind,omitempty"`
	NoResponseReason string       `json:"noResponseReason,omitempty"`
	Attachments      []attachment `json:"attachments,omitempty"`
	// Outcome and Error are set unless the turn completed.
	Outcome event.Outcome `json:"outcome,omitempty"`
	Error   *event.Error  `json:"error,omitempty"`
	Turn    string        `json:"turn,omitempty"`

	text string
}

// doneFrame is the last frame of a stream.
type doneFrame struct {
	Type     string `json:"type"`
	FullText string `json:"fullText"`
	outcome
}

// reply is the response to a message that was sent without streaming.
type reply struct {
	Text string `json:"text"`
	outcome
}

// usage is the model usage of a turn under Eliza's names.
type usage struct {
	PromptTokens     int64  `json:"promptTokens"`
	CompletionTokens int64  `json:"completionTokens"`
	TotalTokens      int64  `json:"totalTokens"`
	Model            string `json:"model,omitempty"`
}

// errorFrame is the last frame of a stream that can't continue. Its turn may continue.
type errorFrame struct {
	Type          string `json:"type"`
	Message       string `json:"message"`
	Reason        string `json:"reason"` // as in the HTTP error
	Retryable     bool   `json:"retryable,omitempty"`
	RetryAfter    int64  `json:"retryAfter,omitempty"` // milliseconds
	UserMessageID string `json:"userMessageId,omitempty"`
}

// outcome returns how the turn ended, in Eliza's terms. While the turn has not ended, ok is false.
//
// The text stays, however the turn ended. A failed turn has a failure kind, so that clients do not take a partial text for the
// whole answer. If the turn has no text, the outcome's text is a sentence for that kind.
//
// Eliza counts cached input as prompt tokens, so all kinds of input are added up. A turn that a person
// stopped is not a failure: it has an outcome and no failure kind.
func (a answer) outcome() (e outcome, ok bool) {
	t := a.turn
	if t == nil || t.Unfinished() {
		return e, false
	}
	e = outcome{
		text: a.text(), AgentName: t.Agent, MessageID: a.id(), UserMessageID: t.Answers,
		ActionCallbackHistory: a.history(), Attachments: a.attachments(), Turn: t.ID,
	}
	if u := t.Usage; u != nil {
		e.Usage = &usage{PromptTokens: u.Input + u.CacheRead + u.CacheWrite, CompletionTokens: u.Output, Model: u.Model}
		e.Usage.TotalTokens = e.Usage.PromptTokens + e.Usage.CompletionTokens
	}
	visible := a.isVisible()
	switch t.Outcome {
	case event.Completed:
		if !visible {
			e.NoResponseReason = "ignored"
		}
		return e, true
	case event.Cancelled:
		e.Outcome = t.Outcome
		return e, true
	}
	e.Outcome, e.Error, e.FailureKind = t.Outcome, t.Error, providerIssue
	if t.Error != nil {
		e.FailureKind = failureKind(t.Error.Code)
	}
	if !visible {
		e.text = failureTexts[e.FailureKind]
	}
	e.MessageID = cmp.Or(e.MessageID, t.ID) // the id under which the list has the failure
	return e, true
}

// isVisible reports whether a client shows anything of the answer.
//
// White space alone is not visible: models sometimes end a turn after a line break.
func (a answer) isVisible() bool {
	return strings.TrimSpace(a.text()) != "" || len(a.attachments()) > 0
}

// Eliza's failure kinds that a turn can have. The fifth, local_inference, is about models on the user's device.
const (
	insufficientCredits = "insufficient_credits"
	noProvider          = "no_provider"
	providerIssue       = "provider_issue"
	rateLimited         = "rate_limited"
)

// failureTexts are shown for failed turns without a text.
//
// They are also what a list shows for such a turn, so that the failure is still visible after a reload.
var failureTexts = map[string]string{
	insufficientCredits: "Sorry, the model provider's credits are used up. Top up the balance and try again.",
	noProvider:          "Sorry, no model provider is set up for me.",
	providerIssue:       "Sorry, I'm having a provider issue",
	rateLimited:         "Sorry, the model provider is limiting requests right now. Please try again in a moment.",
}

// failureKinds maps prefixes of error codes, which the dialects take from their upstreams.
//
// The first matching prefix wins. Prefixes are compared without regard to case, because upstreams differ
// in it.
var failureKinds = []struct{ prefix, kind string }{
	{"rate_limit", rateLimited},
	{"too_many_requests", rateLimited},
	{"resource_exhausted", rateLimited},
	{"429", rateLimited},
	{"insufficient_", insufficientCredits}, // quota, credits, balance
	{"billing", insufficientCredits},
	{"payment_required", insufficientCredits},
	{"402", insufficientCredits},
	{"not_started", noProvider},
	{"no_provider", noProvider},
}

// failureKind returns the kind of an error code. As in Eliza's server, an unknown code is the provider's fault.
func failureKind(code string) string {
	code = strings.ToLower(code)
	for _, k := range failureKinds {
		if strings.HasPrefix(code, k.prefix) {
			return k.kind
		}
	}
	return providerIssue
}
