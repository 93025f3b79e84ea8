// Chat frames, which end a run: completed, aborted or failed.

package openclaw

import (
	"cmp"
	"slices"

	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
)

// chat decodes a chat frame: the status or the end of a run. Its delta frames are ignored, because they repeat the text of
// agent frames, throttled. Each of them may begin a run, since a run need not have agent frames.
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
	// The run ends with this frame, so no later one can show the place of its files.
	if s := string(p.state); s != "status" && s != "delta" {
		d.release(r)
	}
	switch string(p.state) {
	case "status":
		d.phase(r, p.phase)
	case "final":
		// The frame's message may have the end of a text that was lost. reconcile only adds.
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

// completed returns the outcome of a run with a final frame. A run with NO_REPLY and text counts as answered.
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

// reasonSilent is the reason of a completed run without text: the agent chose not to answer.
const reasonSilent = "silent"

// hasText reports whether the run's message has visible text.
func (r *run) hasText() bool {
	return slices.ContainsFunc(r.Texts, func(s *segment) bool { return s.Visible.Len() > 0 })
}

// aborted returns the outcome of a run with an aborted frame. In protocol 4 a run without an answer ends with this frame too;
// the disposition in its lifecycle distinguishes it from a run that was stopped.
func aborted(r *run, p *payload) *event.Body {
	switch r.Disposition {
	case "silent":
		return &event.Body{Outcome: event.Completed, Reason: reasonSilent}
	case "empty":
		return failure("empty", r.Error, "the agent gave no answer")
	}
	return &event.Body{Outcome: event.Cancelled, Reason: string(p.stopReason)}
}

// failed returns the outcome of a run with an error frame. If the frame has no message, it is the one of the run's lifecycle.
func failed(r *run, p *payload) *event.Body {
	code := string(p.errorKind)
	if code == "" || code == unknown {
		code = reason(p.errorReason)
	}
	message := cmp.Or(string(p.errorMessage), r.Error)
	return failure(code, message, "the agent failed")
}

// unknown is the error kind that the gateway uses if it can't classify an error.
const unknown = "unknown"

// reason returns the code of an error without a kind: the reason for which the gateway would try another model, in the terms of
// Leat's other dialects.
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

// failure returns a failed outcome; otherwise is the message if there is none. Rate limits, timeouts and overload are
// retryable.
func failure(code, message, otherwise string) *event.Body {
	message = cmp.Or(message, otherwise)
	retryable := code == "rate_limit" || code == "timeout" || code == "overloaded"
	return &event.Body{Outcome: event.Failed, Error: &event.Error{Code: code, Message: message, Retryable: retryable}}
}

// usage decodes the token counts of a final frame, whose names differ between gateway versions. It returns nil if there are
// none. Zeros count as missing.
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

// injectPrefix begins the ids that the gateway makes for messages of chat.inject.
const injectPrefix = "inject-"

// isInjected reports whether a run id is that of a message that was inserted with chat.inject.
func isInjected(run []byte) bool {
	return len(run) > len(injectPrefix) && string(run[:len(injectPrefix)]) == injectPrefix
}

// injected adds a message that chat.inject inserted into the session. It belongs to no run, so its event has no turn; otherwise
// the mapper would add it to the run that is being streamed.
func (d *decoder) injected(p *payload) error {
	key := string(p.run)
	if err := event.CheckID("runId", key); err != nil {
		return err
	}
	// Injected messages are remembered like ended runs, because a reconnection may repeat the frame.
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
