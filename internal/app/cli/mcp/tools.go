// The tools and their schemas.

package mcp

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonrpc"
	"github.com/leat-dev/leat/transcript"
)

// object is a JSON schema of an object, or a part of one.
type object map[string]any

// text returns the schema of a text.
func text(description string) object { return object{"type": "string", "description": description} }

// schema returns the schema of an object with some required properties.
func schema(properties object, required ...string) object {
	return object{"type": "object", "properties": properties, "required": append([]string{}, required...)}
}

// answerSchema is the output of ask and answer.
var answerSchema = schema(object{
	"conversation": text("Id of the conversation. Pass it to ask to continue."),
	"turn":         text("Id of the turn."),
	"state":        object{"type": "string", "enum": []string{"completed", "failed", "cancelled", "interrupted", "waiting", "running"}},
	"text":         text("The agent's answer so far."),
	"error":        text("Why the answer failed."),
	"question": schema(object{
		"request": text("Id of the question."), "prompt": text("What the agent asks."),
		"options": object{"type": "array", "items": object{"type": "string"}, "description": "The decisions to choose from. Empty for a free text."},
	}, "request", "prompt", "options"),
}, "conversation", "turn", "state", "text")

var (
	ofConversation = text("Id of the conversation.")
	waitSeconds    = object{"type": "integer", "minimum": 1, "maximum": maxWait, "description": "Return the answer so far after this many seconds. Without it, the call waits for the end."}
)

// maxWait is the longest wait that a call can ask for, in seconds: a day.
const maxWait = 24 * 60 * 60

// tools are the descriptions for hosts.
var tools = []object{
	{
		"name": "ask", "title": "Ask an agent", "description": "Put a question to an agent and wait for its answer.",
		"inputSchema": schema(object{
			"text": text("The question."), "agent": text("Name of the agent. Default: the agent of the conversation, or the gateway's."),
			"conversation": text("Id of a conversation to continue. Default: a new one."), "wait_seconds": waitSeconds,
			"stop_on_cancel": object{"type": "boolean", "description": "Stop the agent if this call is canceled. Otherwise it continues, and read shows its answer later."},
		}, "text"),
		"outputSchema": answerSchema,
	},
	{
		"name": "answer", "title": "Answer an agent's question", "description": "Answer the question of an agent that waits, and wait for the rest of its answer. Ask a person for the decision first.",
		"inputSchema": schema(object{
			"conversation": ofConversation, "turn": text("Id of the turn. Default: the one that waits."), "request": text("Id of the question. Default: the first one."),
			"decision": text("approve, deny, or one of the options."), "text": text("A text as the answer, or the reason of a decision."), "wait_seconds": waitSeconds,
		}, "conversation"),
		"outputSchema": answerSchema,
	},
	{
		"name": "conversations", "title": "List conversations", "description": "List the conversations, most recently used first.",
		"inputSchema": schema(object{"limit": object{"type": "integer", "minimum": 1, "maximum": maxListed, "description": "At most this many. Default: 20."}}),
		"outputSchema": schema(object{"conversations": object{"type": "array", "items": schema(object{
			"id": text("Id."), "title": text("Title."), "agent": text("Agent."), "updated": text("RFC 3339."), "waiting": object{"type": "boolean", "description": "An agent waits for a person."},
		}, "id", "title", "updated", "waiting")}}, "conversations"),
		"annotations": object{"readOnlyHint": true},
	},
	{
		"name": "read", "title": "Read a conversation", "description": "Read the newest messages of a conversation, or those before a message.",
		"inputSchema": schema(object{
			"conversation": ofConversation, "before": text("Id of a message: read those before it."),
			"limit": object{"type": "integer", "minimum": 1, "maximum": maxListed, "description": "At most this many messages. Default: 20."},
		}, "conversation"),
		"outputSchema": schema(object{
			"messages": object{"type": "array", "items": schema(object{"id": text("Id."), "role": text("user, assistant or system."), "text": text("Text."), "at": text("RFC 3339.")}, "id", "role", "text", "at")},
			"earlier":  object{"type": "boolean", "description": "There are earlier messages."},
		}, "messages", "earlier"),
		"annotations": object{"readOnlyHint": true},
	},
	{
		"name": "stop", "title": "Stop an agent", "description": "Stop the running turns of a conversation, or one of them. What was written stays.",
		"inputSchema":  schema(object{"conversation": ofConversation, "turn": text("Id of the turn. Default: all turns that run or wait.")}, "conversation"),
		"outputSchema": schema(object{"stopped": object{"type": "array", "items": object{"type": "string"}, "description": "Ids of the turns."}}, "stopped"),
	},
}

// tool returns the function of a tool.
func (h *host) tool(name string) (run func(context.Context, *callParams) (result, error), ok bool) {
	run, ok = map[string]func(context.Context, *callParams) (result, error){
		"ask": h.ask, "answer": h.answer, "conversations": h.conversations, "read": h.readMessages, "stop": h.stop,
	}[name]
	return run, ok
}

// maxListed is the largest number of conversations or messages of one call, and defaultListed the usual one: a model reads all of it.
const (
	maxListed     = 200
	defaultListed = 20
	// maxText is the limit of the text of a message in a list, in bytes. The whole text would fill the context of a model.
	maxText = 32 << 10
)

// limited returns the limit of a list.
func limited(n int) (int, error) {
	if n == 0 {
		n = defaultListed
	}
	if n < 1 || n > maxListed {
		return 0, jsonrpc.Errorf(jsonrpc.InvalidParams, "limit must be 1 to %d", maxListed)
	}
	return n, nil
}

// listEntry is a conversation in a list.
type listEntry struct {
	ID        string `json:"id"`
	Title     string `json:"title"`
	Agent     string `json:"agent,omitempty"`
	Updated   string `json:"updated"`
	IsWaiting bool   `json:"waiting"`
}

func (h *host) conversations(ctx context.Context, p *callParams) (result, error) {
	var in struct {
		Limit int `json:"limit"`
	}
	err := jsonrpc.Decode(p.Arguments, &in)
	if err == nil {
		in.Limit, err = limited(in.Limit)
	}
	if err != nil {
		return result{}, err
	}
	conversations, err := h.Client.Conversations(ctx)
	if err != nil {
		return result{}, err
	}
	list := []listEntry{}
	for _, c := range conversations[:min(in.Limit, len(conversations))] {
		list = append(list, listEntry{c.ID, c.Title, c.Agent, c.Updated.UTC().Format(time.RFC3339), c.IsWaiting})
	}
	return structured(map[string]any{"conversations": list}, "", false)
}

// readMessage is a message in a list.
type readMessage struct {
	ID   string     `json:"id"`
	Role event.Role `json:"role"`
	Text string     `json:"text"`
	At   string     `json:"at"`
}

func (h *host) readMessages(ctx context.Context, p *callParams) (result, error) {
	var in struct {
		Conversation string `json:"conversation"`
		Before       string `json:"before"`
		Limit        int    `json:"limit"`
	}
	err := jsonrpc.Decode(p.Arguments, &in)
	if err == nil {
		in.Limit, err = limited(in.Limit)
	}
	if err != nil {
		return result{}, err
	}
	t := &transcript.Transcript{}
	if in.Before == "" {
		t, err = h.Client.Transcript(ctx, in.Conversation)
	} else {
		var page *leat.Page
		if page, err = h.Client.Page(ctx, in.Conversation, in.Before, in.Limit); err == nil {
			t.Reset(page.Transcript)
		}
	}
	if err != nil {
		return result{}, err
	}
	messages := t.Messages
	earlier := t.Earlier || len(messages) > in.Limit
	messages = messages[max(0, len(messages)-in.Limit):]
	list := []readMessage{}
	for _, m := range messages {
		s := m.Visible()
		if len(s) > maxText {
			s = strings.ToValidUTF8(s[:maxText], "") + "… (cut)"
		}
		list = append(list, readMessage{m.ID, m.Role, s, time.UnixMilli(m.At).UTC().Format(time.RFC3339)})
	}
	return structured(map[string]any{"messages": list, "earlier": earlier}, "", false)
}

func (h *host) stop(ctx context.Context, p *callParams) (result, error) {
	var in struct {
		Conversation string `json:"conversation"`
		Turn         string `json:"turn"`
	}
	if err := jsonrpc.Decode(p.Arguments, &in); err != nil {
		return result{}, err
	}
	t, err := h.Client.Transcript(ctx, in.Conversation)
	if err != nil {
		return result{}, err
	}
	turns := []string{}
	// The newest first, so that stopping one doesn't start another.
	for _, turn := range slices.Backward(t.Turns) {
		if !turn.Unfinished() || !turn.Independent() || in.Turn != "" && turn.ID != in.Turn {
			continue
		}
		ack, err := h.Client.Stop(ctx, in.Conversation, turn.ID)
		if e, ok := errors.AsType[*leat.Error](err); ok && e.Status == http.StatusNotFound {
			continue // removed meanwhile
		}
		if err != nil {
			return result{}, err
		}
		if !ack.AlreadyEnded {
			turns = append(turns, turn.ID)
		}
	}
	return structured(map[string]any{"stopped": turns}, "", false)
}
