package plugin

import (
	"encoding/json"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// Protocol is the version of the protocol that is spoken.
const protocolVersion = 1

// The types of lines that are not events. The first ones are the gateway's, the rest the plugin's.
const (
	// The kinds of plugins; one that is told none is an agent.
	kindChannel = "channel"
	kindAgent   = "agent"

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

// toPlugin is a line to the plugin. A turn's line carries its input beside.
type toPlugin struct {
	Type     string        `json:"type"`
	Protocol int           `json:"protocol,omitempty"`
	Kind     string        `json:"kind,omitempty"` // hello: empty to an agent
	Turn     string        `json:"turn,omitempty"`
	Message  any           `json:"message,omitempty"` // steer: an agent.Message; error: a string
	Answer   *event.Answer `json:"answer,omitempty"`
	Line     int           `json:"line,omitempty"`
}

// turnLine is what starts a turn.
type turnLine struct {
	Type string `json:"type"`
	agent.Input
}

// fromPlugin is what is looked at of a line from the plugin.
type fromPlugin struct {
	Type     string        `json:"type"`
	Turn     string        `json:"turn"`
	For      string        `json:"for"` // the turn that was asked for, where Turn is one inside it
	Protocol int           `json:"protocol"`
	Kind     string        `json:"kind"`  // ready
	Steer    bool          `json:"steer"` // ready: it takes messages into running turns
	Message  string        `json:"message"`
	IsTaken  bool          `json:"taken"`
	Text     string        `json:"text"`
	Merge    dialect.Merge `json:"merge"`
}

// of returns the turn that the line belongs to.
func (f *fromPlugin) of() string {
	if f.For != "" {
		return f.For
	}
	return f.Turn
}

// encode returns a line. What it is given always encodes.
func encode(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	return append(b, '\n'), err
}
