package openclaw

import (
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
)

// chat decodes a chat frame: status and the run's end. Its deltas repeat, throttled, what agent frames bring.
func (d *decoder) chat(p *payload) error {
	switch string(p.state) {
	case "status", "delta", "final", "aborted", "error":
	default:
		d.Unknowns.Add("chat " + string(p.state))
		return nil
	}
	if string(p.state) == "final" && isInjected(p.run) {
		return d.injected(p)
	}
	r, err := d.run(p, true)
	if r == nil || err != nil {
		return err
	}
	if s := string(p.state); s != "status" && s != "delta" {
		d.release(r)
	}
	switch string(p.state) {
	case "status":
		d.phase(r, p.phase)
	case "final":
		d.reconcile(r, p.message, false)
		d.end(r, d.completed(r, p))
	case "aborted":
		d.reconcile(r, p.message, true)
		d.end(r, aborted(r, p))
	case "error":
		d.reconcile(r, p.message, true)
		d.end(r, failed(r, p))
	}
	return nil
}

func (d *decoder) completed(r *run, p *payload) *event.Body {
	b := &event.Body{Outcome: event.Completed, Reason: decoding.StopReason(string(p.stopReason)), Usage: usage(p.usage)}
	if b.Usage != nil {
		b.Usage.Model = r.Model
	}
	if (r.Silent || r.Disposition == "silent") && !r.hasText() {
		b.Reason = reasonSilent
	}
	return b
}

// reasonSilent is why a run that completed said nothing: the agent chose not to answer.
const reasonSilent = "silent"

// said reports whether the run's message has visible text.
func (r *run) hasText() bool {
	for _, s := range r.Texts {
		if s.Visible.Len() > 0 {
			return true
		}
	}
	return false
}

// aborted tells a run that was stopped from one of protocol 4 that ends so because the model had nothing to say.
func aborted(r *run, p *payload) *event.Body {
	switch r.Disposition {
	case "silent":
		return &event.Body{Outcome: event.Completed, Reason: reasonSilent}
	case "empty":
		return failure("empty", r.Error, "the agent gave no answer")
	}
	return &event.Body{Outcome: event.Cancelled, Reason: string(p.stopReason)}
}

func failed(r *run, p *payload) *event.Body {
	code := string(p.errorKind)
	if code == "" || code == unknown {
		code = reason(p.errorReason)
	}
	message := string(p.errorMessage)
	if message == "" {
		message = r.Error
	}
	return failure(code, message, "the agent failed")
}

// unknown is the kind of an error of which no kind is known.
const unknown = "unknown"

// reason is the code of an error without a kind: why the gateway would try another model, in the words that others have for it.
func reason(b []byte) string {
	switch r := string(b); r {
	case "":
		return unknown
	case "format":
		return "invalid_request"
	default:
		return r
	}
}

func failure(code, message, otherwise string) *event.Body {
	if message == "" {
		message = otherwise
	}
	retryable := code == "rate_limit" || code == "timeout" || code == "overloaded"
	return &event.Body{Outcome: event.Failed, Error: &event.Error{Code: code, Message: message, Retryable: retryable}}
}

// usage reads the totals of a final; nil where there are none.
func usage(object []byte) *event.Usage {
	c := cursor{b: object}
	if len(object) == 0 || !c.enter('{') {
		return nil
	}
	var u event.Usage
	var key []byte
	for c.next(&key) {
		switch string(key) {
		case "input", "inputTokens":
			u.Input = c.int()
		case "output", "outputTokens":
			u.Output = c.int()
		case "cacheRead":
			u.CacheRead = c.int()
		case "cacheWrite":
			u.CacheWrite = c.int()
		default:
			c.skip()
		}
	}
	if u == (event.Usage{}) {
		return nil
	}
	return &u
}

const injectPrefix = "inject-"

func isInjected(run []byte) bool {
	return len(run) > len(injectPrefix) && string(run[:len(injectPrefix)]) == injectPrefix
}

// injected adds a message that chat.inject put into the session. It belongs to no run: its operation has no turn, so
// that it can't be taken for the run that the stream answers.
func (d *decoder) injected(p *payload) error {
	key := string(p.run)
	if err := event.CheckID("runId", key); err != nil {
		return err
	}
	for _, id := range d.EndedRuns {
		if id == key {
			return nil
		}
	}
	text, ok := content(p.message)
	if !ok || !d.adopt(p, false) {
		d.Unknowns.Add(foreign)
		return nil
	}
	d.remember(key)
	d.base.Emit(event.Event{Type: event.MessageAdd, Message: key, Body: &event.Body{
		Role: event.Assistant, Source: "inject", Parts: []event.Part{{Kind: event.KindText, Text: text}},
	}})
	return nil
}
