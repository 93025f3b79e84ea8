package acp

import (
	"encoding/json"
	"fmt"

	"github.com/leat-dev/leat/agent"
)

// version is that of the protocol which Leat speaks.
const version = 1

// The codes of the errors that turns of this agent end with, beside those that the agent gives.
const (
	codeNotStarted = "agent_not_started"
	codeExit       = "agent_exit"
	codeStream     = "invalid_stream"
	codeTooLarge   = "too_large"
	codeLogin      = "agent_login"
)

// The codes of JSON-RPC and of the protocol.
const (
	noMethod     = -32601
	authRequired = -32000
	notFound     = -32002
)

// message is a line from the agent.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *failure        `json:"error"`
}

// toAgent is a line to it.
type toAgent struct {
	Version string   `json:"jsonrpc"`
	ID      any      `json:"id,omitempty"`
	Method  string   `json:"method,omitempty"`
	Params  any      `json:"params,omitempty"`
	Result  any      `json:"result,omitempty"`
	Error   *failure `json:"error,omitempty"`
}

// failure is an error of JSON-RPC.
type failure struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (f *failure) Error() string { return f.Message }

// shown is the failure of a request as readers get it.
func (f *failure) agentError(summary string) error {
	if f.Code == authRequired {
		return &agent.Error{Code: codeLogin, Message: "the agent wants to be logged in first, by its own program", Detail: f.Message}
	}
	return &agent.Error{Code: fmt.Sprint(f.Code), Message: summary, Detail: f.Message}
}

type initializeParams struct {
	Protocol int            `json:"protocolVersion"`
	Can      map[string]any `json:"clientCapabilities"`
	Info     map[string]any `json:"clientInfo"`
}

// abilities are what the agent says of itself.
type abilities struct {
	Protocol int `json:"protocolVersion"`
	Agent    struct {
		Load    bool `json:"loadSession"`
		Session struct {
			Resume json.RawMessage `json:"resume"`
		} `json:"sessionCapabilities"`
		Prompt struct {
			Image    bool `json:"image"`
			Audio    bool `json:"audio"`
			Embedded bool `json:"embeddedContext"`
		} `json:"promptCapabilities"`
	} `json:"agentCapabilities"`
}

// resumes reports whether sessions can be taken up without being told again.
func (a *abilities) resumes() bool {
	r := string(a.Agent.Session.Resume)
	return r != "" && r != "null" && r != "false"
}

// open names a session, for session/new without an id.
type openParams struct {
	ID      string     `json:"sessionId,omitempty"`
	Dir     string     `json:"cwd"`
	Servers []struct{} `json:"mcpServers"`
}

type openResult struct {
	ID string `json:"sessionId"`
}

type promptParams struct {
	ID     string  `json:"sessionId"`
	Prompt []block `json:"prompt"`
}

type block struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	Data string `json:"data,omitempty"`
	MIME string `json:"mimeType,omitempty"`
	URI  string `json:"uri,omitempty"`
	Name string `json:"name,omitempty"`
}

// chosen answers a request for a permission.
type permissionResult struct {
	Outcome outcome `json:"outcome"`
}

type outcome struct {
	Outcome string `json:"outcome"`
	Option  string `json:"optionId,omitempty"`
}
