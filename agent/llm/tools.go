// Tools that the client of a turn runs: the model gets them as functions, its calls become requests of the turn, and their results are
// part of the next request.

package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

const (
	// maxRounds limits the responses of a turn that call tools. It is more than a task for a page needs, and ends a model that calls the
	// same tool forever.
	maxRounds = 32
	// maxArguments limits the arguments of a call, in bytes. Every viewer of the conversation gets them.
	maxArguments = 1 << 20
)

// reply collects what the next request must repeat of a response. Each API has its own, because they require different things besides
// the texts and the calls, such as signatures of the reasoning.
type reply interface {
	// add applies a frame that the decoder has accepted. Its data is valid only during the call.
	add(f dialect.Frame) error
	// calls returns the calls of functions in the response so far, in order. Their arguments need not be valid.
	calls() []functionCall
	// next returns the request that continues after the response: the request that led to it, the response and the results of its calls.
	// It doesn't change the value or the lists of the request.
	next(request any, results []callResult) any
}

// functionCall is a call of a function by the model. ID is the provider's, which may be empty.
type functionCall struct {
	ID        string `json:"id,omitempty"`
	Name      string `json:"name"`
	Arguments string `json:"arguments,omitempty"` // JSON
}

// input returns the arguments as a JSON object. Invalid arguments become an empty object, because APIs refuse a request with others. The
// result of the call then says what was wrong.
func (c *functionCall) input() json.RawMessage {
	if !isObject(c.Arguments) {
		return json.RawMessage("{}")
	}
	return json.RawMessage(c.Arguments)
}

// isObject reports whether a text is a JSON object.
func isObject(text string) bool {
	return strings.HasPrefix(strings.TrimSpace(text), "{") && json.Valid([]byte(text))
}

// callResult is a call with its result, a text.
type callResult struct {
	functionCall
	text     string
	hasError bool
}

// value returns the result as JSON: as it is if it is JSON, otherwise as a string.
func (r *callResult) value() json.RawMessage {
	if json.Valid([]byte(r.text)) {
		return json.RawMessage(r.text)
	}
	return jsonString(r.text)
}

// jsonString returns a text as a JSON string.
func jsonString(text string) json.RawMessage {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string can always be encoded
	}
	return b
}

// toolState is what an attempt knows about the tools of the client. It is stored with the position in a background response.
type toolState struct {
	HiddenParts map[string]bool `json:"hidden,omitempty"` // parts of the decoder that aren't emitted; see partKey
	Calls       []functionCall  `json:"calls,omitempty"`  // of the current response, so far
	// HasEnded is true if the response has ended, so that Calls wait for their results.
	HasEnded bool        `json:"ended,omitempty"`
	Usage    event.Usage `json:"usage,omitzero"` // of the responses that have ended
	// Decoders is the number of decoders before the current one. Each response after calls has a new one, and their keys may be the same.
	Decoders int `json:"decoders,omitempty"`
}

// errCalls ends the reading of a response whose calls have to be answered.
var errCalls = errors.New("llm: the response calls tools of the client")

// checkTools returns an error if the provider doesn't accept the name of a tool. Servers at other addresses have their own rules.
func (a *modelAgent) checkTools(tools []agent.ClientTool) error {
	if a.api.toolName == nil || a.name != a.api.title {
		return nil
	}
	for _, tool := range tools {
		if !a.api.toolName.MatchString(tool.Name) {
			return &agent.Error{Code: codeRefused, Message: fmt.Sprintf("the tool %q can't be offered to %s: its name must match %s", tool.Name, a.name, a.api.toolName)}
		}
	}
	return nil
}

// The names of functions that OpenAI, Anthropic and Gemini accept.
var (
	openAIToolName    = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	anthropicToolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	geminiToolName    = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$`)
)

// parametersOf returns the JSON schema of a tool's arguments, with the keys that providers require of every function.
func parametersOf(tool *agent.ClientTool) json.RawMessage {
	var schema map[string]json.RawMessage
	if json.Unmarshal(tool.Parameters, &schema) == nil && schema["type"] != nil && schema["properties"] != nil {
		return tool.Parameters
	}
	if schema == nil {
		schema = map[string]json.RawMessage{}
	}
	for key, value := range map[string]string{"type": `"object"`, "properties": `{}`} {
		if schema[key] == nil {
			schema[key] = json.RawMessage(value)
		}
	}
	b, err := json.Marshal(schema)
	if err != nil {
		panic(err) // its values come from JSON
	}
	return b
}

// functionTool is a tool as Chat Completions and Ollama get it.
type functionTool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

// functionTools returns the tools of the client for Chat Completions and Ollama.
func functionTools(tools []agent.ClientTool) []functionTool {
	var list []functionTool
	for i := range tools {
		list = append(list, functionTool{"function", function{tools[i].Name, tools[i].Description, parametersOf(&tools[i])}})
	}
	return list
}

// recorder is a decoder that passes the frames of a response to its reply.
type recorder struct {
	dialect.Decoder
	name     string // of the dialect
	reply    reply
	hasEnded bool // later frames don't belong to the response
}

// Decode implements [dialect.Decoder].
func (r *recorder) Decode(f dialect.Frame) ([]event.Event, error) {
	ops, err := r.Decoder.Decode(f)
	if err != nil || r.hasEnded {
		return ops, err
	}
	r.hasEnded = slices.ContainsFunc(ops, func(op event.Event) bool { return op.Type == event.TurnEnd })
	if err := r.reply.add(f); err != nil {
		return ops, &dialect.Error{Dialect: r.name, Reason: "calls", Err: err}
	}
	return ops, nil
}

// Unwrap implements [dialect.Wrapper].
func (r *recorder) Unwrap() dialect.Decoder { return r.Decoder }

// isOffered reports whether the client offers a tool.
func (t *attempt) isOffered(name string) bool {
	return slices.ContainsFunc(t.in.Tools, func(tool agent.ClientTool) bool { return tool.Name == name })
}

// hides reports whether an event belongs to a call of a client's tool. Such a call isn't shown as a tool of the agent, because viewers
// get it as a request. A call without a state is one that the provider doesn't run itself.
func (t *attempt) hides(op *event.Event) bool {
	if op.Part == "" || len(t.in.Tools) == 0 {
		return false
	}
	key := partKey(op)
	if op.Type == event.PartStart {
		delete(t.tools.HiddenParts, key) // a repeated call may have another part with this key
		if b := op.Get(); b.Kind == event.KindTool && b.State == "" && t.isOffered(b.Name) {
			if t.tools.HiddenParts == nil {
				t.tools.HiddenParts = map[string]bool{}
			}
			t.tools.HiddenParts[key] = true
		}
	}
	return t.tools.HiddenParts[key]
}

// partKey returns the key of an operation's part within the turn.
func partKey(op *event.Event) string { return op.Message + "\n" + op.Part }

// expect prepares the results of the calls of a response that has ended. Those of invalid calls are known at once.
func (t *attempt) expect() bool {
	t.results = nil
	if t.reply == nil {
		return false
	}
	for _, c := range t.reply.calls() {
		r := callResult{functionCall: c}
		switch {
		case !t.isOffered(c.Name):
			r.text = fmt.Sprintf("Error: the tool %q does not exist", c.Name)
		case len(c.Arguments) > maxArguments:
			r.text = fmt.Sprintf("Error: the arguments have %d bytes; at most %d are possible", len(c.Arguments), maxArguments)
		case !isObject(c.Arguments):
			r.text = "Error: the arguments are not a complete JSON object, so the tool was not called"
		}
		r.hasError = r.text != ""
		t.results = append(t.results, r)
	}
	t.tools.HasEnded = len(t.results) > 0
	return t.tools.HasEnded
}

// requests returns the events that ask for the results of the calls, all at once, so that a client can run the tools in parallel.
func (t *attempt) requests() []event.Event {
	var requests []event.Event
	for i := range t.results {
		if !t.results[i].hasError {
			r := t.callRequest(i)
			requests = append(requests, event.Event{Type: event.TurnWait, Body: &event.Body{Request: &r}})
		}
	}
	return requests
}

// callRequest returns the request for a call. Its id is unique in the conversation, because some clients take it as the id of the call. It
// is the same after a restart.
func (t *attempt) callRequest(i int) event.Request {
	c := &t.results[i]
	return event.Request{ID: fmt.Sprintf("%s-%d-%d", t.in.Turn, t.answers+1, i+1), Kind: event.RequestInput, Tool: c.Name, Data: c.input()}
}

// collect waits for the results of all calls. The requests are open already, so the order of the answers doesn't matter.
func (t *attempt) collect(ctx context.Context) error {
	for i := range t.results {
		r := &t.results[i]
		if r.hasError {
			continue // known already
		}
		a, err := t.emitter.Ask(ctx, t.callRequest(i))
		if err != nil {
			return err
		}
		if a.Decision == event.Deny {
			r.text, r.hasError = strings.TrimSuffix("Error: the client refused the call: "+a.Text, ": "), true
			continue
		}
		r.text = cmp.Or(a.Text, string(a.Decision))
		r.hasError = strings.HasPrefix(r.text, "Error: ") // as clients report that a tool has failed
	}
	return nil
}

// count adds the usage of a response to that of the turn, and returns the total. It returns nil if no response had a usage.
func (t *attempt) count(u *event.Usage) *event.Usage {
	s := &t.tools.Usage
	if u != nil {
		s.Model = cmp.Or(u.Model, s.Model)
		s.Input += u.Input
		s.Output += u.Output
		s.CacheRead += u.CacheRead
		s.CacheWrite += u.CacheWrite
		s.Reasoning += u.Reasoning
		s.Cost += u.Cost
	}
	if *s == (event.Usage{}) {
		return nil
	}
	total := *s
	return &total
}

// tooManyRounds returns the error of a turn in which the model calls tools too often.
func (t *attempt) tooManyRounds() *agent.Error {
	return &agent.Error{Code: codeRounds, Message: fmt.Sprintf("%s called tools in more than %d responses of one turn", t.a.name, maxRounds)}
}

// growingText is a text that arrives in pieces, which may end inside a character.
type growingText struct {
	decoder dialect.Text
	text    []byte
}

// add appends a piece, which is a JSON string, null or absent.
func (g *growingText) add(token json.RawMessage) error {
	if len(token) == 0 {
		return nil
	}
	s, err := g.decoder.JSON(token)
	g.text = append(g.text, s...)
	return err
}

// String returns the text so far.
func (g *growingText) String() string { return string(g.text) }
