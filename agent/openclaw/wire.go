package openclaw

import (
	"encoding/json"
	"time"
)

const (
	minProtocol = 3
	maxProtocol = 4
	// numbered is the protocol whose connections number their frames from 1, and whose histories name runs.
	numberedProtocol = 4
)

// frame is what the gateway sends, as far as all kinds share it.
type frame struct {
	Type    string          `json:"type"`
	ID      string          `json:"id"`
	OK      bool            `json:"ok"`
	Event   string          `json:"event"`
	Seq     int64           `json:"seq"`
	Payload json.RawMessage `json:"payload"`
	Error   *rpcError       `json:"error"`
}

// request is what is asked.
type request struct {
	Type   string `json:"type"`
	ID     string `json:"id"`
	Method string `json:"method"`
	Params any    `json:"params"`
}

// runFrame is what agent and chat frames say of where they belong.
type runFrame struct {
	Run       string `json:"runId"`
	Session   string `json:"sessionKey"`
	SpawnedBy string `json:"spawnedBy"`
	State     string `json:"state"`  // chat
	Stream    string `json:"stream"` // agent
	Data      struct {
		Item    string   `json:"itemId"`
		Kind    string   `json:"kind"`
		Phase   string   `json:"phase"`
		Media   []string `json:"mediaUrls"`
		Replace bool     `json:"replace"`
	} `json:"data"`
	Message present `json:"message"` // chat
}

// present reports whether a field has a value. It keeps nothing of the value, because texts are repeated in every frame.
type present bool

// UnmarshalJSON implements [json.Unmarshaler].
func (p *present) UnmarshalJSON(b []byte) error {
	*p = string(b) != "null"
	return nil
}

// over reports whether a chat frame is a run's end.
func (f *runFrame) isEnd() bool {
	return f.State == "final" || f.State == "aborted" || f.State == "error"
}

// startsTool reports whether a frame is the first of a tool.
func (f *runFrame) startsTool() bool {
	return f.Data.Phase == "start" && (f.Stream == "tool" || f.Stream == "item" && f.Data.Kind == "tool")
}

type challenge struct {
	Nonce        string   `json:"nonce"`
	At           int64    `json:"ts"`
	Capabilities []string `json:"capabilities"`
}

// hello is how the gateway takes a client in.
type hello struct {
	Type     string `json:"type"`
	Protocol int    `json:"protocol"`
	Server   struct {
		Version string `json:"version"`
		Boot    string `json:"bootId"`
	} `json:"server"`
	Snapshot struct {
		Uptime   int64 `json:"uptimeMs"`
		Defaults struct {
			Agent string `json:"defaultAgentId"`
			Main  string `json:"mainSessionKey"`
		} `json:"sessionDefaults"`
	} `json:"snapshot"`
	Auth struct {
		Scopes []string `json:"scopes"`
	} `json:"auth"`
	Policy struct {
		MaxPayload   int64 `json:"maxPayload"`
		TickInterval int64 `json:"tickIntervalMs"`
		Attachments  *struct {
			MaxBytes int64 `json:"maxBytes"`
		} `json:"attachments"`
	} `json:"policy"`

	clock bool          // the challenge said what time it is there
	ahead time.Duration // of the gateway's clock, less what the challenge took on its way
}
