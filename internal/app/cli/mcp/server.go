package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/internal/base/jsonrpc"
)

// versions are the revisions of the protocol that hosts may speak, the newest first. Tools are the same in all of them; older hosts ignore
// structured content and output schemas.
var versions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// lastWithBatches is the newest revision with batches of messages, which servers must accept.
const lastWithBatches = "2025-03-26"

// Options describe a server. All fields but AgentName are required.
type Options struct {
	Client *leat.Client
	// AgentName is the agent of new conversations. If it is empty, the gateway's default answers.
	AgentName string
	Version   string // of the program
	Input     io.Reader
	Output    io.Writer
	// Explain turns an error of the client into one for people.
	Explain func(error) error
	// Title returns the title of a conversation that begins with a text.
	Title func(text string) string
}

// host is a server for one host.
type host struct {
	Options
	conn *jsonrpc.Conn
}

// Run serves the host until the input ends. Turns that run then continue.
func Run(ctx context.Context, o Options) error { return newHost(o).conn.Serve(ctx, o.Input) }

func newHost(o Options) *host {
	h := &host{Options: o}
	h.conn = jsonrpc.New(jsonrpc.Options{Output: o.Output, Handle: h.handle, CancelMethod: "notifications/cancelled"})
	return h
}

// handle returns the work of a method. Notifications need none: nothing depends on that of a host that is initialized.
func (h *host) handle(method string, params json.RawMessage) jsonrpc.Work {
	switch method {
	case "initialize":
		return func(context.Context) (any, error) { return h.greet(params) }
	case "ping":
		return func(context.Context) (any, error) { return nil, nil }
	case "tools/list":
		return func(context.Context) (any, error) { return map[string]any{"tools": tools}, nil }
	case "tools/call":
		return func(ctx context.Context) (any, error) { return h.call(ctx, params) }
	}
	return nil
}

// instructions tell the model of a host what the tools are for.
const instructions = "Leat is a gateway for AI agents. Use ask to put a question to one of its agents and wait for the answer. An answer with the state " +
	"waiting has a question for a person: pass the person's answer on with the tool answer. Conversations are kept and can be continued."

// greet answers initialize with the revision that the host wants, or the newest one if it is unknown.
func (h *host) greet(params json.RawMessage) (any, error) {
	var p struct {
		Version string `json:"protocolVersion"`
	}
	if err := jsonrpc.Decode(params, &p); err != nil {
		return nil, err
	}
	if !slices.Contains(versions, p.Version) {
		p.Version = versions[0]
	}
	// Later revisions have removed batches. A host sends none before it has this response.
	h.conn.AcceptBatches(p.Version <= lastWithBatches)
	return map[string]any{
		"protocolVersion": p.Version, "instructions": instructions,
		"capabilities": map[string]any{"tools": map[string]any{}},
		"serverInfo":   map[string]string{"name": "leat", "title": "Leat", "version": h.Version},
	}, nil
}

// content is what a tool returns for hosts that show only text. Its type is always "text".
type content struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// result is the result of a tool.
type result struct {
	Content    []content `json:"content"`
	Structured any       `json:"structuredContent,omitempty"`
	IsError    bool      `json:"isError,omitempty"`
}

// callParams are the params of tools/call. A host that wants progress sends a token for it.
type callParams struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Meta      struct {
		Token json.RawMessage `json:"progressToken"`
	} `json:"_meta"`
}

// call runs a tool.
func (h *host) call(ctx context.Context, params json.RawMessage) (any, error) {
	var p callParams
	if err := jsonrpc.Decode(params, &p); err != nil {
		return nil, err
	}
	run, ok := h.tool(p.Name)
	if !ok {
		return nil, jsonrpc.Errorf(jsonrpc.InvalidParams, "unknown tool %q", p.Name)
	}
	r, err := run(ctx, &p)
	var invalid *jsonrpc.Error
	switch {
	case ctx.Err() != nil:
		return nil, jsonrpc.ErrNoResponse // the host has given the call up
	case errors.As(err, &invalid):
		return result{Content: []content{{"text", invalid.Message}}, IsError: true}, nil
	case err != nil:
		return result{Content: []content{{"text", h.Explain(err).Error()}}, IsError: true}, nil
	}
	return r, nil
}

// structured returns a result with the same content in both forms. text is what people read; if it is empty, it is the JSON.
func structured(v any, text string, isError bool) (result, error) {
	if text == "" {
		b, err := json.Marshal(v)
		if err != nil {
			return result{}, err
		}
		text = string(b)
	}
	return result{Content: []content{{"text", text}}, Structured: v, IsError: isError}, nil
}
