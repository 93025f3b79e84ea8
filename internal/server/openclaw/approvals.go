// Approvals.

package openclaw

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/transcript"
)

// The decisions of the protocol.
const (
	allowOnce   = "allow-once"
	allowAlways = "allow-always"
	deny        = "deny"
)

// errUnknownApproval has the words by which the Control UI recognizes that an approval was answered elsewhere.
var errUnknownApproval = server.Errorf(http.StatusNotFound, "APPROVAL_NOT_FOUND", "unknown or expired approval id")

// approval is an approval as clients get it: one of a plugin, which has a prompt and not a command, and is the only kind that the terminal
// interface shows. Its times are in epoch milliseconds; clients hide it after ExpiresAt.
type approval struct {
	ID      string `json:"id"`
	Request struct {
		Title       string   `json:"title"` // one line
		Description string   `json:"description"`
		Tool        string   `json:"toolName,omitempty"`
		AgentID     string   `json:"agentId"`
		SessionKey  string   `json:"sessionKey"`
		RunID       string   `json:"runId"`
		ToolCallID  string   `json:"toolCallId,omitempty"`
		Allowed     []string `json:"allowedDecisions"`
	} `json:"request"`
	CreatedAt int64 `json:"createdAtMs"`
	ExpiresAt int64 `json:"expiresAtMs"`
}

// approvalResolved reports that an approval is closed. It has no decision, because the log's view has only open requests.
type approvalResolved struct {
	ID string `json:"id"`
	TS int64  `json:"ts"` // epoch milliseconds
}

// approvalOf returns an approval.
func approvalOf(k sessionKey, run, turn string, r *transcript.Request) *approval {
	a := &approval{ID: requestID(turn, r.ID), CreatedAt: r.At, ExpiresAt: deadline()}
	title := "The agent needs an approval"
	if r.Tool != "" {
		title = "The agent wants to run " + r.Tool
	}
	a.Request.Title, a.Request.Description, a.Request.Tool = title, cmp.Or(strings.TrimSpace(r.Prompt), title), r.Tool
	a.Request.AgentID, a.Request.SessionKey, a.Request.RunID = k.agent, k.full, run
	a.Request.Allowed = []string{allowOnce}
	if alwaysOf(&r.Request) != "" {
		a.Request.Allowed = append(a.Request.Allowed, allowAlways)
	}
	a.Request.Allowed = append(a.Request.Allowed, deny)
	return a
}

// alwaysOf returns the option of a request that allows it from now on, or "".
func alwaysOf(r *event.Request) string {
	i := slices.IndexFunc(r.Options, func(o string) bool { return strings.Contains(strings.ToLower(o), "always") })
	if i < 0 {
		return ""
	}
	return r.Options[i]
}

// listApprovals answers plugin.approval.list.
func (c *connection) listApprovals(_ *struct{}) (any, error) {
	list := []*approval{}
	err := c.openRequests(func(k sessionKey, run, turn string, r *transcript.Request) {
		if r.Kind == event.RequestApproval {
			list = append(list, approvalOf(k, run, turn, r))
		}
	})
	return list, err
}

// approvalParams are the parameters of plugin.approval.resolve.
type approvalParams struct {
	ID       string `json:"id"`
	Decision string `json:"decision"`
}

// resolveApproval answers plugin.approval.resolve.
func (c *connection) resolveApproval(p *approvalParams) (any, error) {
	r, err := c.request(p.ID, errUnknownApproval)
	if err != nil {
		return nil, err
	}
	command, always := r.command(), alwaysOf(&r.Request)
	switch {
	case p.Decision == allowOnce:
		command.Decision = event.Approve
	case p.Decision == allowAlways && always != "":
		command.Decision = event.Decision(always)
	case p.Decision == deny:
		command.Decision = event.Deny
	default:
		return nil, server.Invalid("invalid decision %q", p.Decision)
	}
	if _, err := c.do(r.conversation, command); err != nil {
		return nil, err
	}
	return map[string]any{"ok": true}, nil
}
