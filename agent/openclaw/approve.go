// Approvals: requests of the gateway to allow a tool, in the forms that its versions send, and the answers to them. Another client
// may answer a request first.

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

// The gateway's decisions.
const (
	allowOnce   = "allow-once"
	allowAlways = "allow-always"
	deny        = "deny"
)

// approval is a permission that the gateway requests before it runs a command (exec) or a plugin's tool.
type approval struct {
	ID       string `json:"id"`
	Decision string `json:"decision"` // set in the event that reports the resolution
	Request  struct {
		Session string   `json:"sessionKey"`
		Command string   `json:"command"`
		Preview string   `json:"commandPreview"` // shown to viewers instead of Command if it is not empty
		Call    string   `json:"toolCallId"`
		CWD     string   `json:"cwd"`
		Host    string   `json:"host"`
		Allowed []string `json:"allowedDecisions"` // viewers can choose allow-always only if it is in this list
		// The following fields are only set for a plugin's approval.
		Title       string `json:"title"`
		Description string `json:"description"`
		Tool        string `json:"toolName"`
	} `json:"request"`

	plugin bool // a plugin requests it, so it is resolved by the plugin.approval methods
}

// pendingApproval is an approval that was shown to viewers. It stays in the turn's map after its resolution, so that an
// approval that a later connection lists again is not shown twice.
type pendingApproval struct {
	resolvedElsewhere atomic.Bool // another client has resolved it
}

// approvalRequested posts an approval to the turn that occupies its session, or else to one that observes a run in it. Without
// such a turn, only other clients can resolve it.
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

// approvalResolved posts a resolution to all turns, because the frame doesn't name the session.
func (a *gatewayAgent) approvalResolved(f *frame) {
	if p, ok := parseApproval(f); ok {
		a.eachTurn(func(t *turn) { t.post(item{kind: itemResolved, approval: p}) })
	}
}

// parseApproval decodes the payload of exec.approval.* and plugin.approval.* events. The id is checked because it becomes the id of
// a request in Leat's log; parseApproval reports false if it is missing or not valid there.
func parseApproval(f *frame) (approval, bool) {
	var p approval
	if json.Unmarshal(f.Payload, &p) != nil || event.CheckID("approval", p.ID) != nil || p.ID == "" {
		return p, false
	}
	p.plugin = strings.HasPrefix(f.Event, "plugin.")
	return p, true
}

// askPending lists the approvals that the gateway requested before this connection was opened, and shows those of the turn's session.
// The gateway announces an approval by an event only, which a client that was disconnected has missed. A gateway that doesn't
// know a list method has no such approvals. Any other error is logged and not retried: the next connection lists them again.
func (t *turn) askPending(ctx context.Context, conn *connection) {
	for _, plugin := range []bool{false, true} {
		var pending []approval
		if err := conn.call(ctx, approvalMethod(plugin, "list"), struct{}{}, &pending); err != nil {
			if rpcErr, ok := errors.AsType[*rpcError](err); ok && strings.HasPrefix(rpcErr.Message, "unknown method") {
				continue
			}
			t.emitter.Log().Warn("could not read OpenClaw's pending approvals", "error", err)
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

// approvalMethod returns the name of a gateway method for approvals.
func approvalMethod(plugin bool, verb string) string {
	if plugin {
		return "plugin.approval." + verb
	}
	return "exec.approval." + verb
}

// ask shows an approval to viewers, at most once, and sends the decision to the gateway. It doesn't block the turn: a task
// waits for the decision. If the turn ends before, ctx is done and nothing is sent, so that other clients can still decide. A
// decision is dropped if another client has resolved the approval in the meantime.
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
				t.emitter.Log().Warn("could not request an approval", "approval", p.ID, "error", err)
			}
			return
		}
		if a.resolvedElsewhere.Load() {
			return
		}
		if err := t.a.resolve(ctx, p, answer); err != nil && ctx.Err() == nil {
			t.emitter.Log().Warn("OpenClaw refused the decision on an approval", "approval", p.ID, "error", err)
		}
	})
}

// request returns the approval as viewers see it. The prompt is the command or, for a plugin, its title and description. Viewers
// can always approve and deny; allow-always is an additional option.
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

// resolve sends a decision to the gateway. Every answer except approve and allow-always denies. If the connection is lost, resolve
// repeats the call on the next one. It first waits until the lost connection is closed: a write can fail before the reading
// goroutine notices the loss, and awaitConnection would return the same connection again.
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

// closeApproval shows that another client has resolved an approval. The flag resolvedElsewhere makes repeated reports harmless, and
// keeps the task of ask from sending a late decision. Unknown decisions are shown as a denial.
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
