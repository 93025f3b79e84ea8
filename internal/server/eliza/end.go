package eliza

import (
	"strings"

	"github.com/leat-dev/leat/event"
)

// outcome is what is told of a turn that has ended, beside its text.
type outcome struct {
	AgentName             string       `json:"agentName"`
	MessageID             string       `json:"messageId,omitempty"`
	UserMessageID         string       `json:"userMessageId,omitempty"`
	Usage                 *usage       `json:"usage,omitempty"`
	ActionCallbackHistory []string     `json:"actionCallbackHistory,omitempty"`
	FailureKind           string       `json:"failureKind,omitempty"`
	NoResponseReason      string       `json:"noResponseReason,omitempty"`
	Attachments           []attachment `json:"attachments,omitempty"`
	// Outcome and Error say how a turn ended that did not complete.
	Outcome event.Outcome `json:"outcome,omitempty"`
	Error   *event.Error  `json:"error,omitempty"`
	Turn    string        `json:"turn,omitempty"`

	text string
}

// done is the last frame of a stream.
type done struct {
	Type     string `json:"type"`
	FullText string `json:"fullText"`
	outcome
}

// reply is the answer to a message that was not streamed.
type reply struct {
	Text string `json:"text"`
	outcome
}

// usage is a turn's use of its model in Eliza's words.
type usage struct {
	PromptTokens     int64  `json:"promptTokens"`
	CompletionTokens int64  `json:"completionTokens"`
	TotalTokens      int64  `json:"totalTokens"`
	Model            string `json:"model,omitempty"`
}

// failure is the last frame of a stream that can't go on. The turn may go on without it.
type failure struct {
	Type          string `json:"type"`
	Message       string `json:"message"`
	Reason        string `json:"reason"` // that of an HTTP error
	Retryable     bool   `json:"retryable,omitempty"`
	RetryAfter    int64  `json:"retryAfter,omitempty"` // milliseconds
	UserMessageID string `json:"userMessageId,omitempty"`
}

// ended returns how the turn ended, in Eliza's words. ok is false while it has not ended.
//
// What was said stands, however the turn ended. A turn that failed has a failure kind, so that its clients don't take what was
// said for the whole answer. If nothing was said, the text is a sentence for that kind.
func (a answer) ended() (e outcome, ok bool) {
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
	said := a.said()
	switch t.Outcome {
	case event.Completed:
		if !said {
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
	if !said {
		e.text = canned[e.FailureKind]
	}
	if e.MessageID == "" {
		e.MessageID = t.ID // under which the failure is listed
	}
	return e, true
}

// said reports whether a reader sees anything of the answer.
func (a answer) said() bool {
	return strings.TrimSpace(a.text()) != "" || len(a.attachments()) > 0
}

// Eliza's failure kinds that a turn's error code can come to. Its fifth, local_inference, is about models on the device.
const (
	insufficientCredits = "insufficient_credits"
	noProvider          = "no_provider"
	providerIssue       = "provider_issue"
	rateLimited         = "rate_limited"
)

// canned is what a client shows of a turn that failed without a word.
var canned = map[string]string{
	insufficientCredits: "Sorry, the model provider's credits are used up. Top up the balance and try again.",
	noProvider:          "Sorry, no model provider is set up for me.",
	providerIssue:       "Sorry, I'm having a provider issue",
	rateLimited:         "Sorry, the model provider is limiting requests right now. Please try again in a moment.",
}

// failureKinds maps beginnings of error codes, as the dialects hand them on from their upstreams.
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

// failureKind returns the kind of an error code. Eliza's server calls every other failure a provider's too.
func failureKind(code string) string {
	code = strings.ToLower(code)
	for _, k := range failureKinds {
		if strings.HasPrefix(code, k.prefix) {
			return k.kind
		}
	}
	return providerIssue
}
