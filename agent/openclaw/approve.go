package openclaw

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/leat-dev/leat/event"
)

// The gateway's words for decisions.
const (
	allowOnce   = "allow-once"
	allowAlways = "allow-always"
	deny        = "deny"
)

// approval is what the gateway asks leave for.
type approval struct {
	ID       string `json:"id"`
	Decision string `json:"decision"` // of one that was resolved
	Request  struct {
		Session string   `json:"sessionKey"`
		Command string   `json:"command"`
		Preview string   `json:"commandPreview"`
		Call    string   `json:"toolCallId"`
		CWD     string   `json:"cwd"`
		Host    string   `json:"host"`
		Allowed []string `json:"allowedDecisions"`
		// of a plugin
		Title       string `json:"title"`
		Description string `json:"description"`
		Tool        string `json:"toolName"`
	} `json:"request"`

	plugin bool
}

// asking is an approval that a person is asked for.
type pendingApproval struct {
	resolvedElsewhere atomic.Bool // somebody else has resolved it
}

func (a *gatewayAgent) approvalRequested(f *frame) {
	p, ok := parseApproval(f)
	if !ok {
		return
	}
	a.mu.Lock()
	t := a.sessions[p.Request.Session]
	for _, u := range a.turns {
		if t == nil && u.isObserved && u.session == p.Request.Session {
			t = u
		}
	}
	a.mu.Unlock()
	if t != nil {
		t.post(item{kind: itemAsk, approval: p})
	}
}

// approvalResolved tells all turns, since the frame does not say whose it is.
func (a *gatewayAgent) approvalResolved(f *frame) {
	if p, ok := parseApproval(f); ok {
		a.eachTurn(func(t *turn) { t.post(item{kind: itemResolved, approval: p}) })
	}
}

func parseApproval(f *frame) (approval, bool) {
	var p approval
	if json.Unmarshal(f.Payload, &p) != nil || event.CheckID("approval", p.ID) != nil || p.ID == "" {
		return p, false
	}
	p.plugin = strings.HasPrefix(f.Event, "plugin.")
	return p, true
}

// approvals takes up what the session's runs wait for since before this connection.
func (t *turn) askPending(ctx context.Context, conn *connection) {
	for _, plugin := range []bool{false, true} {
		var pending []approval
		if err := conn.call(ctx, approvalMethod(plugin, "list"), struct{}{}, &pending); err != nil {
			var rpcErr *rpcError
			if errors.As(err, &rpcErr) && strings.HasPrefix(rpcErr.Message, "unknown method") {
				continue
			}
			t.emitter.Log().Warn("it is not known what OpenClaw waits for", "error", err)
			return
		}
		for _, p := range pending {
			if p.Request.Session == t.session && event.CheckID("approval", p.ID) == nil {
				p.plugin = plugin
				t.ask(ctx, p)
			}
		}
	}
}

func approvalMethod(plugin bool, verb string) string {
	if plugin {
		return "plugin.approval." + verb
	}
	return "exec.approval." + verb
}

// ask asks a person, once, beside the run.
func (t *turn) ask(ctx context.Context, p approval) {
	if t.approvals[p.ID] != nil {
		return
	}
	a := &pendingApproval{}
	t.approvals[p.ID] = a
	t.tasks.Go(func() {
		answer, err := t.emitter.Ask(ctx, p.request())
		if err != nil {
			if ctx.Err() == nil {
				t.emitter.Log().Warn("nobody could be asked", "approval", p.ID, "error", err)
			}
			return
		}
		if a.resolvedElsewhere.Load() {
			return
		}
		if err := t.a.resolve(ctx, p, answer); err != nil && ctx.Err() == nil {
			t.emitter.Log().Warn("OpenClaw does not take the answer", "approval", p.ID, "error", err)
		}
	})
}

// question is what a person is asked.
func (p *approval) request() event.Request {
	q := event.Request{ID: p.ID, Kind: event.RequestApproval, Tool: "exec", Prompt: p.Request.Command}
	if p.Request.Preview != "" {
		q.Prompt = p.Request.Preview
	}
	if p.plugin {
		q.Tool, q.Prompt = p.Request.Tool, strings.TrimSpace(p.Request.Title+"\n"+p.Request.Description)
	}
	if slices.Contains(p.Request.Allowed, allowAlways) {
		q.Options = []string{allowAlways}
	}
	data := map[string]string{}
	for key, v := range map[string]string{"command": p.Request.Command, "cwd": p.Request.CWD, "host": p.Request.Host, "call": p.Request.Call} {
		if v != "" {
			data[key] = v
		}
	}
	if len(data) > 0 {
		q.Data = mustJSON(data)
	}
	return q
}

// resolve hands a person's answer to the gateway, over the next connection where there is none.
func (a *gatewayAgent) resolve(ctx context.Context, p approval, answer event.Answer) error {
	decision := deny
	switch answer.Decision {
	case event.Approve:
		decision = allowOnce
	case allowAlways:
		decision = allowAlways
	}
	for {
		conn, err := a.awaitConnection(ctx, returnLimit, nil)
		if err != nil {
			return err
		}
		err = conn.call(ctx, approvalMethod(p.plugin, "resolve"), map[string]string{"id": p.ID, "decision": decision}, nil)
		if !errors.Is(err, errLost) {
			return err
		}
		<-conn.closed
	}
}

// resolved closes a question that somebody else has answered.
func (t *turn) closeApproval(p approval) error {
	a := t.approvals[p.ID]
	if a == nil || a.resolvedElsewhere.Swap(true) {
		return nil
	}
	decision := event.Deny
	switch p.Decision {
	case allowOnce:
		decision = event.Approve
	case allowAlways:
		decision = allowAlways
	}
	return t.emit(nil, []event.Event{{
		Type: event.TurnResume, Body: &event.Body{Answer: &event.Answer{ID: p.ID, Decision: decision, Subject: "openclaw"}},
	}})
}
