// The frames of OpenClaw's gateway protocol that this package reads or writes. The dialect decodes the output of runs.

package openclaw

import (
	"encoding/json"
	"time"
)

const (
	minProtocol = 3
	maxProtocol = 4
	// numberedProtocol is the first protocol that numbers the frames of a connection (from 1), names runs and messages in histories,
	// and has queue modes and steering. Before it, rows are matched to messages by text and time.
	numberedProtocol = 4
)

// frame is a frame from the gateway: a response, which has ID, OK and either Payload or Error, or an event, which has Event,
// Seq and Payload.
type frame struct {
	Type    string          `json:"type"`
	ID      string          `json:"id"` // of the request that a response answers
	OK      bool            `json:"ok"`
	Event   string          `json:"event"`
	Seq     int64           `json:"seq"`
	Payload json.RawMessage `json:"payload"`
	Error   *rpcError       `json:"error"`
}

// request is a request to the gateway. The response has the same ID.
type request struct {
	Type   string `json:"type"`
	ID     string `json:"id"`
	Method string `json:"method"`
	Params any    `json:"params"`
}

// runFrame holds the fields of agent and chat events that decide which turn they belong to and how they are queued. The dialect
// decodes their content.
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

// present reports whether a JSON field has a value. It doesn't store the value, because every frame repeats the whole text so
// far.
type present bool

// UnmarshalJSON implements [json.Unmarshaler].
func (p *present) UnmarshalJSON(b []byte) error {
	*p = string(b) != "null"
	return nil
}

// isEnd reports whether a chat frame ends its run.
func (f *runFrame) isEnd() bool {
	return f.State == "final" || f.State == "aborted" || f.State == "error"
}

// startsTool reports whether a frame is the first one of a tool call.
func (f *runFrame) startsTool() bool {
	return f.Data.Phase == "start" && (f.Stream == "tool" || f.Stream == "item" && f.Data.Kind == "tool")
}

// challenge is the payload of connect.challenge. Its nonce has to be signed.
type challenge struct {
	Nonce        string   `json:"nonce"`
	At           int64    `json:"ts"`
	Capabilities []string `json:"capabilities"`
}

// hello is the payload of the response to connect.
type hello struct {
	Type     string `json:"type"`
	Protocol int    `json:"protocol"`
	Server   struct {
		Version string `json:"version"`
		Boot    string `json:"bootId"` // id of the process
	} `json:"server"`
	Snapshot struct {
		Uptime   int64 `json:"uptimeMs"` // of the process, in milliseconds
		Defaults struct {
			Agent string `json:"defaultAgentId"`
			Main  string `json:"mainSessionKey"`
		} `json:"sessionDefaults"`
	} `json:"snapshot"`
	Auth struct {
		Scopes []string `json:"scopes"`
	} `json:"auth"`
	Policy struct {
		// MaxPayload is the size of the largest request, in bytes; ask refuses larger ones. If it is 0, there is no known limit.
		MaxPayload   int64 `json:"maxPayload"`
		TickInterval int64 `json:"tickIntervalMs"`
		Attachments  *struct {
			MaxBytes int64 `json:"maxBytes"`
		} `json:"attachments"`
	} `json:"policy"`

	clock bool          // the challenge contained the gateway's time
	ahead time.Duration // the gateway's clock minus the local one, or less: the challenge's time in transit is not known
}
