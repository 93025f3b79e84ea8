package openaichat

import (
	"strconv"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/sse"
)

// Encoder writes one answer, either as a stream of chunks or as one object. Its methods append to b and return it. It is not safe for
// concurrent use.
//
// For a stream, call Start, then Text and Reasoning as they arrive, then End or Fail. Official clients reject a stream whose first delta has
// no role or whose choice never gets a finish_reason; Start and End write them.
type Encoder struct {
	// ID, Model and Created (epoch seconds) are repeated in every chunk. Set them before the first call.
	ID, Model string
	Created   int64
	// Usage is true if the client asked for the token usage, which is sent in a separate chunk at the end.
	Usage bool
}

// Start appends the first chunk, which has the role.
func (e *Encoder) Start(b []byte) []byte {
	return e.chunk(b, []byte(`{"role":"assistant","content":""}`), "")
}

// Text appends a delta of the answer. An empty text appends nothing.
func (e *Encoder) Text(b []byte, text string) []byte { return e.grow(b, "content", text) }

// Reasoning appends a delta of the reasoning. An empty text appends nothing.
func (e *Encoder) Reasoning(b []byte, text string) []byte {
	return e.grow(b, "reasoning_content", text)
}

// grow appends a chunk whose delta has a text.
func (e *Encoder) grow(b []byte, key, text string) []byte {
	if text == "" {
		return b
	}
	d := append(event.AppendString([]byte{'{'}, key), ':')
	return e.chunk(b, append(event.AppendString(d, text), '}'), "")
}

// Ping appends a comment that keeps the connection alive. The API has no event for that.
func (e *Encoder) Ping(b []byte) []byte { return sse.AppendComment(b, "ping") }

// End appends the end of a complete answer: the finish_reason, the usage if the client asked for it, and [DONE]. reason is that of the turn;
// a nil u is a usage of zero tokens.
func (e *Encoder) End(b []byte, reason string, u *event.Usage) []byte {
	b = e.chunk(b, []byte(`{}`), finishReason(reason))
	if e.Usage {
		d := e.head(nil, "chat.completion.chunk")
		d = append(d, `,"choices":[],"usage":`...)
		b = write(b, append(appendUsage(d, u), '}'))
	}
	return write(b, []byte("[DONE]"))
}

// Fail appends an error instead of the end. Official clients report it as an error of the API.
func (e *Encoder) Fail(b []byte, kind, code, message string) []byte {
	return write(b, AppendError(nil, kind, code, "", message))
}

// AppendError appends an error object of the API, which is the same in a stream and in the body of a response. An empty code or param is
// written as null.
func AppendError(b []byte, kind, code, param, message string) []byte {
	b = event.AppendString(append(b, `{"error":{"message":`...), message)
	b = event.AppendString(append(b, `,"type":`...), kind)
	b = orNull(append(b, `,"param":`...), param)
	return append(orNull(append(b, `,"code":`...), code), "}}"...)
}

// orNull appends s as a JSON string, or null if s is empty.
func orNull(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return event.AppendString(b, s)
}

// AppendCompletion appends the response to a request without stream. reason and u are as in End.
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

// head appends the beginning of an object up to the fields that all chunks of an answer share. The caller closes the object.
func (e *Encoder) head(b []byte, object string) []byte {
	b = event.AppendString(append(b, `{"id":`...), e.ID)
	b = event.AppendString(append(b, `,"object":`...), object)
	b = strconv.AppendInt(append(b, `,"created":`...), e.Created, 10)
	return event.AppendString(append(b, `,"model":`...), e.Model)
}

// chunk appends a chunk with one choice. Every chunk has "usage":null if the client asked for the usage, as in the API itself.
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

// appendUsage appends the usage in the form of the last chunk.
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

// write appends an event. Its error is ignored, because AppendEvent refuses only invalid names and ids, and both are empty.
func write(b, data []byte) []byte {
	b, _ = sse.AppendEvent(b, "", "", data)
	return b
}
