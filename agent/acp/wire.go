package acp

import (
	"encoding/json"
	"fmt"

	"github.com/leat-dev/leat/agent"
)

// version is the protocol version that Leat speaks.
const version = 1

// The error codes of turns. JSON-RPC error codes of the agent appear as decimal numbers.
const (
	codeNotStarted = "agent_not_started" // the process can't be started or doesn't initialize
	codeExit       = "agent_exit"        // the process ended during the turn
	codeStream     = "invalid_stream"    // the output violates the protocol
	codeTooLarge   = "too_large"         // a line or the turn's output exceeds its limit
	codeLogin      = "agent_login"       // the agent isn't logged in at its provider
)

// Error codes of JSON-RPC (noMethod) and of the protocol (authRequired: the agent needs a login before it opens sessions).
const (
	noMethod     = -32601
	authRequired = -32000
)

// message is a message from the agent: a response if Method is empty, a request if both Method and ID are set, else a
// notification.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *failure        `json:"error"`
}

// toAgent is a message to the agent: a request with ID and Method, a notification with Method only, or a
// response with ID and either Result or Error.
type toAgent struct {
	Version string   `json:"jsonrpc"`
	ID      any      `json:"id,omitempty"`
	Method  string   `json:"method,omitempty"`
	Params  any      `json:"params,omitempty"`
	Result  any      `json:"result,omitempty"`
	Error   *failure `json:"error,omitempty"`
}

// failure is a JSON-RPC error object.
type failure struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (f *failure) Error() string { return f.Message }

// agentError returns the failure as the error of a turn. Readers see the summary; the agent's own text is for operators.
func (f *failure) agentError(summary string) error {
	if f.Code == authRequired {
		return &agent.Error{Code: codeLogin, Message: "the agent requires a login; log in with its own program first", Detail: f.Message}
	}
	return &agent.Error{Code: fmt.Sprint(f.Code), Message: summary, Detail: f.Message}
}

// initializeParams are the parameters of initialize. Protocol is the newest version that the client speaks, and
// Can lists its capabilities. The agent answers with the version that it will use.
type initializeParams struct {
	Protocol int            `json:"protocolVersion"`
	Can      map[string]any `json:"clientCapabilities"`
	Info     map[string]any `json:"clientInfo"`
}

// abilities is the result of initialize.
type abilities struct {
	Protocol int `json:"protocolVersion"`
	// Agent has the capabilities that Leat uses; a missing one is false.
	Agent struct {
		Load    bool `json:"loadSession"`
		Session struct {
			Resume json.RawMessage `json:"resume"`
		} `json:"sessionCapabilities"`
		Prompt struct {
			Image bool `json:"image"`
			Audio bool `json:"audio"`
		} `json:"promptCapabilities"`
	} `json:"agentCapabilities"`
}

// resumes reports whether the agent supports session/resume, which restores a session without replaying its history. The
// capability is an object, which may be empty.
func (a *abilities) resumes() bool {
	r := string(a.Agent.Session.Resume)
	return r != "" && r != "null" && r != "false"
}

// openParams are the parameters of session/new (without an id), session/load and session/resume.
type openParams struct {
	ID      string     `json:"sessionId,omitempty"`
	Dir     string     `json:"cwd"`
	Servers []struct{} `json:"mcpServers"` // required by the protocol; always empty
}

// openResult is the result of session/new.
type openResult struct {
	ID string `json:"sessionId"`
}

// promptParams are the parameters of session/prompt. ID is the session's.
type promptParams struct {
	ID     string  `json:"sessionId"`
	Prompt []block `json:"prompt"`
}

// block is a content block of a prompt. Type decides which other fields are set: "text" has Text, "image" and "audio" have Data
// (base64) and MIME, "resource_link" has URI, Name and MIME.
type block struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	Data string `json:"data,omitempty"`
	MIME string `json:"mimeType,omitempty"`
	URI  string `json:"uri,omitempty"`
	Name string `json:"name,omitempty"`
}

// permissionResult is the result of session/request_permission.
type permissionResult struct {
	Outcome outcome `json:"outcome"`
}

// outcome is "selected" with the id of an option, or "cancelled".
type outcome struct {
	Outcome string `json:"outcome"`
	Option  string `json:"optionId,omitempty"`
}
