package openaichat

import (
	"strconv"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/sse"
)

// Encoder writes one answer, as a stream of chunks or whole. Its methods append to b and return it. It is not safe for
// concurrent use.
type Encoder struct {
	// ID, Model and Created (epoch seconds) are the answer's; they are set before anything is written.
	ID, Model string
	Created   int64
	// Usage is true if the client asked for the token usage, which is sent in a separate chunk at the end.
	Usage bool
}

// Start begins the stream.
func (e *Encoder) Start(b []byte) []byte {
	return e.chunk(b, []byte(`{"role":"assistant","content":""}`), "")
}

// Text appends to the answer.
func (e *Encoder) Text(b []byte, text string) []byte { return e.grow(b, "content", text) }

// Reasoning appends to the thinking.
func (e *Encoder) Reasoning(b []byte, text string) []byte {
	return e.grow(b, "reasoning_content", text)
}

func (e *Encoder) grow(b []byte, key, text string) []byte {
	if text == "" {
		return b
	}
	d := append(event.AppendString([]byte{'{'}, key), ':')
	return e.chunk(b, append(event.AppendString(d, text), '}'), "")
}

// Ping appends a comment that keeps the connection alive. The API has no event for that.
func (e *Encoder) Ping(b []byte) []byte { return sse.AppendComment(b, "ping") }

// End ends an answer that is whole. reason is the turn's; u may be nil.
func (e *Encoder) End(b []byte, reason string, u *event.Usage) []byte {
	b = e.chunk(b, []byte(`{}`), finishReason(reason))
	if e.Usage {
		d := e.head(nil, "chat.completion.chunk")
		d = append(d, `,"choices":[],"usage":`...)
		b = write(b, append(appendUsage(d, u), '}'))
	}
	return write(b, []byte("[DONE]"))
}

// Fail ends an answer that did not become whole.
func (e *Encoder) Fail(b []byte, kind, code, message string) []byte {
	return write(b, AppendError(nil, kind, code, "", message))
}

// AppendError appends an error as the API has it, in a stream and as an answer. code and param may be empty.
func AppendError(b []byte, kind, code, param, message string) []byte {
	b = event.AppendString(append(b, `{"error":{"message":`...), message)
	b = event.AppendString(append(b, `,"type":`...), kind)
	b = orNull(append(b, `,"param":`...), param)
	return append(orNull(append(b, `,"code":`...), code), "}}"...)
}

func orNull(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return event.AppendString(b, s)
}

// AppendCompletion appends a whole answer. reason and u are those of End.
func (e *Encoder) AppendCompletion(b []byte, text, reasoning, reason string, u *event.Usage) []byte {
	b = e.head(b, "chat.completion")
	b = append(b, `,"choices":[{"index":0,"message":{"role":"assistant","content":`...)
	b = append(event.AppendString(b, text), `,"refusal":null`...)
	if reasoning != "" {
		b = event.AppendString(append(b, `,"reasoning_content":`...), reasoning)
	}
	b = append(b, `},"logprobs":null,"finish_reason":`...)
	b = append(event.AppendString(b, finishReason(reason)), `}],"usage":`...)
	return append(appendUsage(b, u), '}')
}

func (e *Encoder) head(b []byte, object string) []byte {
	b = event.AppendString(append(b, `{"id":`...), e.ID)
	b = event.AppendString(append(b, `,"object":`...), object)
	b = strconv.AppendInt(append(b, `,"created":`...), e.Created, 10)
	return event.AppendString(append(b, `,"model":`...), e.Model)
}

func (e *Encoder) chunk(b, delta []byte, finish string) []byte {
	d := e.head(nil, "chat.completion.chunk")
	d = append(append(d, `,"choices":[{"index":0,"delta":`...), delta...)
	d = orNull(append(d, `,"finish_reason":`...), finish)
	d = append(d, "}]"...)
	if e.Usage {
		d = append(d, `,"usage":null`...)
	}
	return write(b, append(d, '}'))
}

// finishReason maps the reason of a completed turn to one of the API's finish reasons. The API requires one, so any other reason is stop.
func finishReason(reason string) string {
	switch reason {
	case "max_tokens", "length", "max_output_tokens", "model_context_window_exceeded":
		return "length"
	}
	return "stop"
}

func appendUsage(b []byte, u *event.Usage) []byte {
	if u == nil {
		u = &event.Usage{}
	}
	prompt := u.Input + u.CacheRead + u.CacheWrite
	b = strconv.AppendInt(append(b, `{"prompt_tokens":`...), prompt, 10)
	b = strconv.AppendInt(append(b, `,"completion_tokens":`...), u.Output, 10)
	b = strconv.AppendInt(append(b, `,"total_tokens":`...), prompt+u.Output, 10)
	b = strconv.AppendInt(append(b, `,"prompt_tokens_details":{"cached_tokens":`...), u.CacheRead, 10)
	b = strconv.AppendInt(append(b, `},"completion_tokens_details":{"reasoning_tokens":`...), u.Reasoning, 10)
	return append(b, "}}"...)
}

// write appends an event, which has no name that could be refused.
func write(b, data []byte) []byte {
	b, _ = sse.AppendEvent(b, "", "", data)
	return b
}
