package plugin

import (
	"cmp"
	"encoding/json"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// protocolVersion is the version of the protocol, which both sides announce in their first line.
const protocolVersion = 1

// The kinds of plugins in hello and ready. A missing kind means agent.
const (
	kindChannel = "channel"
	kindAgent   = "agent"
)

// The types of lines that are not events: first those that the gateway sends, then those that the plugin sends.
const (
	lineHello  = "hello"
	lineTurn   = "turn"
	lineCancel = "cancel"
	lineSteer  = "steer"
	lineAnswer = "answer"
	lineError  = "error"

	lineReady    = "ready"
	lineSteered  = "steered"
	lineText     = "text"
	lineCallback = "callback"
)

// toPlugin is a line to the plugin, except the one that starts a turn.
type toPlugin struct {
	Type     string        `json:"type"`
	Protocol int           `json:"protocol,omitempty"`
	Kind     string        `json:"kind,omitempty"` // hello: empty for an agent
	Turn     string        `json:"turn,omitempty"`
	Message  any           `json:"message,omitempty"` // steer: an agent.Message; error: a string
	Answer   *event.Answer `json:"answer,omitempty"`
	Line     int           `json:"line,omitempty"`
}

// turnLine is the line that starts a turn. It has the fields of the input next to its type.
type turnLine struct {
	Type string `json:"type"`
	agent.Input
}

// fromPlugin has the fields of a plugin's line that the gateway reads itself. Events are decoded again by the dialect.
type fromPlugin struct {
	Type     string        `json:"type"`
	Turn     string        `json:"turn"`
	For      string        `json:"for"` // the gateway's turn, if Turn is a nested one
	Protocol int           `json:"protocol"`
	Kind     string        `json:"kind"`  // ready
	Steer    bool          `json:"steer"` // ready: the plugin accepts messages during a turn
	Message  string        `json:"message"`
	IsTaken  bool          `json:"taken"`
	Text     string        `json:"text"`
	Merge    dialect.Merge `json:"merge"`
	// Capabilities is in the ready line of a channel. It is decoded only there, because in other lines the key may mean anything.
	Capabilities json.RawMessage `json:"capabilities"`
}

// of returns the id of the gateway's turn that the line belongs to.
func (f *fromPlugin) of() string {
	return cmp.Or(f.For, f.Turn)
}

// encode returns v as a line.
func encode(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	return append(b, '\n'), err
}
