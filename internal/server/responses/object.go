// The object of a response.
//
// It is made of the turn as the answer has it, and of the settings of the request that began it. The settings aren't stored, so an object that is
// read later has the defaults in their place.

package responses

import (
	"cmp"
	"encoding/json"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/transcript"
)

// The states of a response.
const (
	statusQueued     = "queued"
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
	statusFailed     = "failed"
	statusCancelled  = "cancelled"
)

// object is a response. Clients expect all keys.
type object struct {
	ID           string            `json:"id"`
	Object       string            `json:"object"`
	CreatedAt    int64             `json:"created_at"`
	CompletedAt  *int64            `json:"completed_at"`
	Status       string            `json:"status"`
	Background   bool              `json:"background"`
	Conversation conversationRef   `json:"conversation"`
	Error        *failure          `json:"error"`
	Incomplete   *incomplete       `json:"incomplete_details"`
	Instructions *string           `json:"instructions"`
	Metadata     map[string]string `json:"metadata"`
	Model        string            `json:"model"`
	Output       []item            `json:"output"`
	IsParallel   bool              `json:"parallel_tool_calls"`
	Previous     *string           `json:"previous_response_id"`
	Store        bool              `json:"store"`
	Temperature  *float64          `json:"temperature"`
	ToolChoice   string            `json:"tool_choice"`
	Tools        []json.RawMessage `json:"tools"`
	TopP         *float64          `json:"top_p"`
	Truncation   string            `json:"truncation"`
	Usage        *usage            `json:"usage"`
}

// conversationRef names a conversation. Requests may have the id alone, but responses always have the object.
type conversationRef struct {
	ID string `json:"id"`
}

// incomplete says why an answer has no proper end. A stopped turn has none of these reasons, so its response has only a status.
type incomplete struct {
	Reason string `json:"reason"`
}

// usage counts tokens. Leat counts cached tokens apart from the others, and OpenAI counts them among the input.
type usage struct {
	Input        int64         `json:"input_tokens"`
	InputDetails inputDetails  `json:"input_tokens_details"`
	Output       int64         `json:"output_tokens"`
	Details      outputDetails `json:"output_tokens_details"`
	Total        int64         `json:"total_tokens"`
}

// inputDetails divides the input. The clients read it without a check, so it is there even if nothing was cached.
type inputDetails struct {
	Cached int64 `json:"cached_tokens"`
}

// outputDetails divides the output, and is always there for the same reason.
type outputDetails struct {
	Reasoning int64 `json:"reasoning_tokens"`
}

// settings are what a request says about its response, and what the response repeats. They aren't stored.
type settings struct {
	Background   bool
	Instructions *string
	Metadata     map[string]string
	Previous     *string
	Tools        []json.RawMessage
	IsTemporary  bool // store is false
}

// newObject returns the response of a turn in a conversation, from a number on, without its state.
func newObject(conversation, turn string, from int64, s settings) *object {
	o := &object{
		ID: responseID(turn, from), Object: "response", Status: statusQueued, Background: s.Background, Instructions: s.Instructions,
		Conversation: conversationRef{prefixConversation + conversation}, Metadata: s.Metadata, Output: []item{}, IsParallel: true,
		Previous: s.Previous, Store: !s.IsTemporary, ToolChoice: "auto", Tools: s.Tools, Truncation: "disabled",
	}
	if o.Metadata == nil {
		o.Metadata = map[string]string{}
	}
	if o.Tools == nil {
		o.Tools = []json.RawMessage{}
	}
	return o
}

// describe sets what the log says about the turn.
func (o *object) describe(a *answer.Answer) {
	t := a.Turn()
	if t == nil {
		return
	}
	o.Model = t.Agent
	o.CreatedAt = cmp.Or(t.QueuedAt, t.StartedAt, t.EndedAt) / 1000
	if t.State != transcript.TurnQueued {
		o.Status = statusInProgress
	}
}

// end sets how the turn has ended.
//
// A stopped turn is cancelled, although its stream ends with response.incomplete: the clients refuse an event response.cancelled.
func (o *object) end(t *transcript.Turn) {
	o.Usage = usageOf(t.Usage)
	switch t.Outcome {
	case event.Completed:
		o.Status = statusCompleted
		if t.Reason == "max_tokens" {
			o.Status, o.Incomplete = statusIncomplete, &incomplete{"max_output_tokens"}
		}
		if at := t.EndedAt / 1000; o.Status == statusCompleted {
			o.CompletedAt = &at
		}
	case event.Cancelled:
		o.Status = statusCancelled
	default:
		o.Status, o.Error = statusFailed, failureOf(t)
	}
}

// event returns the type of the event that ends a response.
func (o *object) event() string {
	switch o.Status {
	case statusCompleted:
		return "response.completed"
	case statusFailed:
		return "response.failed"
	}
	return "response.incomplete"
}

// usageOf returns the usage of a turn, or nil if its agent reported none: zeros would look like a free answer.
func usageOf(u *event.Usage) *usage {
	if u == nil {
		return nil
	}
	input := u.Input + u.CacheRead + u.CacheWrite
	return &usage{input, inputDetails{u.CacheRead}, u.Output, outputDetails{u.Reasoning}, input + u.Output}
}
