// The events of the thread stream.

package langgraph

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/internal/server"
)

// Methods of events. The channel that a client subscribes to has the same name, except for input.
const (
	methodLifecycle   = "lifecycle"
	methodCheckpoints = "checkpoints"
	methodValues      = "values"
	methodUpdates     = "updates"
	methodMessages    = "messages"
	methodTools       = "tools"
	methodInput       = "input.requested"
	methodCustom      = "custom"
	channelInput      = "input"
)

// threadEvent is an event of the thread stream. Its fields are named as in the protocol.
type threadEvent struct {
	Type   string      `json:"type"` // event
	ID     string      `json:"event_id"`
	Seq    int64       `json:"seq"`
	Method string      `json:"method"`
	Params eventParams `json:"params"`
}

type eventParams struct {
	Namespace []string `json:"namespace"` // always empty: there are no graphs inside others
	Timestamp int64    `json:"timestamp"` // epoch milliseconds of the log
	Node      string   `json:"node,omitempty"`
	Data      any      `json:"data"`
}

// lifecycleData says what a run does.
type lifecycleData struct {
	Event string `json:"event"` // running, completed, interrupted or failed
	Graph string `json:"graph_name,omitempty"`
	Error string `json:"error,omitempty"`
}

// checkpointData names the checkpoint of the values that follow.
type checkpointData struct {
	ID     string `json:"id"`
	Parent string `json:"parent_id,omitempty"`
	Step   int64  `json:"step"`
	Source string `json:"source"`
}

// inputData is a question.
type inputData struct {
	ID      string          `json:"interrupt_id"`
	Payload json.RawMessage `json:"payload"`
}

// customData is data of the agent.
type customData struct {
	Name    string          `json:"name"`
	Payload json.RawMessage `json:"payload"`
}

// updatesData has the messages of a node.
type updatesData struct {
	Node   string  `json:"node"`
	Values *values `json:"values"`
}

// messageData is an event of a message. Event determines which fields are used.
//
// The run names the message, because clients assemble messages that grow at the same time by it.
type messageData struct {
	Event   string `json:"event"`
	Run     string `json:"run_id"`
	ID      string `json:"id,omitempty"`
	Role    string `json:"role,omitempty"`
	Call    string `json:"tool_call_id,omitempty"`
	Index   *int   `json:"index,omitempty"`
	Content *block `json:"content,omitempty"`
	Delta   *delta `json:"delta,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Usage   *usage `json:"usage,omitempty"`
}

// delta is what a block gets.
type delta struct {
	Type      string `json:"type"` // text-delta, reasoning-delta or block-delta
	Text      string `json:"text,omitempty"`
	Reasoning string `json:"reasoning,omitempty"`
	Fields    *block `json:"fields,omitempty"` // that replace those of the block
}

// toolData is an event of a tool. Event determines which fields are used.
type toolData struct {
	Event   string          `json:"event"`
	Call    string          `json:"tool_call_id"`
	Name    string          `json:"tool_name,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	Delta   string          `json:"delta,omitempty"`
	Output  *string         `json:"output,omitempty"`
	Message string          `json:"message,omitempty"`
}

// subscription is what a client wants from the thread stream.
type subscription struct {
	Channels   []string   `json:"channels"`
	Namespaces [][]string `json:"namespaces"`
	Since      *int64     `json:"since"` // seq of the last event that the client has
}

// has reports whether the client wants events of a method. The name is that of custom data.
func (sub *subscription) has(method, name string) bool {
	// The namespace of every event is empty, so it is only below the empty one.
	if len(sub.Namespaces) > 0 && !slices.ContainsFunc(sub.Namespaces, func(ns []string) bool { return len(ns) == 0 }) {
		return false
	}
	channel := method
	if method == methodInput {
		channel = channelInput
	}
	return slices.Contains(sub.Channels, channel) || method == methodCustom && name != "" && slices.Contains(sub.Channels, method+":"+name)
}

// check refuses channels that the protocol doesn't have.
func (sub *subscription) check() error {
	for _, c := range sub.Channels {
		switch c {
		case methodLifecycle, methodCheckpoints, methodValues, methodUpdates, methodMessages, methodTools, channelInput, methodCustom, "tasks":
		default:
			if !strings.HasPrefix(c, methodCustom+":") {
				return server.Invalid("unknown channel %q", c)
			}
		}
	}
	return nil
}

// seqShift is by how many bits the seq of the log is shifted to the left for the seq of an event, so that all events of one entry of the log have
// different ones. JavaScript has 53 bits.
const seqShift = 12

// keepAlive is a comment, which clients ignore. An empty line after it would be an event without data for them.
const keepAlive = ": keep-alive\n"

// appendFrame appends a server-sent event.
func appendFrame(b []byte, id, name string, data any) ([]byte, error) {
	encoded, err := server.Marshal(data)
	if err != nil {
		return b, fmt.Errorf("langgraph: encode %s: %w", name, err)
	}
	b = append(b, "id: "+id+"\nevent: "+name+"\ndata: "...)
	b = append(b, encoded...)
	return append(b, "\n\n"...), nil
}

// append appends the event to a stream.
func (e *threadEvent) append(b []byte) ([]byte, error) {
	return appendFrame(b, strconv.FormatInt(e.Seq, 10), e.Method, e)
}
