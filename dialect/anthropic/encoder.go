// Writing an answer as a stream of the Messages API, for clients of that API.

package anthropic

import (
	"strconv"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/sse"
)

// Encoder writes one message in the format of the Anthropic Messages API. A stream has named events, blocks one after another with
// indexes from 0, one message_start and, unless the message fails, one message_stop. Its methods append to b and return it.
// It is not safe for concurrent use.
//
// Call Start, then Text and Reasoning as they arrive, then End or Fail. A message that isn't streamed is written by AppendMessage alone.
type Encoder struct {
	// ID and Model are those of the message. Set them before the first call.
	ID, Model string

	open   string // type of the open block, or empty if none is open
	blocks int    // the number of blocks started; the last one's index is one less
}

// Start appends message_start. Its usage is zero, because the tokens are known only at the end.
func (e *Encoder) Start(b []byte) []byte {
	d := append([]byte(nil), `{"type":"message_start","message":{"id":`...)
	d = event.AppendString(d, e.ID)
	d = event.AppendString(append(d, `,"type":"message","role":"assistant","model":`...), e.Model)
	d = append(d, `,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":0}}}`...)
	return write(b, "message_start", d)
}

// Text appends a delta of the answer. An empty text appends nothing.
func (e *Encoder) Text(b []byte, text string) []byte { return e.grow(b, "text", text) }

// Reasoning appends a delta of the reasoning. It has no signature, so a client can't send it back to Anthropic's models.
func (e *Encoder) Reasoning(b []byte, text string) []byte { return e.grow(b, "thinking", text) }

// grow appends a delta to a block of the given type. If the open block has another type, it first ends that one and starts a new block.
func (e *Encoder) grow(b []byte, block, text string) []byte {
	if text == "" {
		return b
	}
	if e.open != block {
		b = e.begin(e.stop(b), block)
	}
	// The type of a delta is that of its block with a suffix, and its text is under the name of the block.
	d := append([]byte(nil), `{"type":"content_block_delta","index":`...)
	d = strconv.AppendInt(d, int64(e.blocks-1), 10)
	d = event.AppendString(append(d, `,"delta":{"type":`...), block+"_delta")
	d = append(event.AppendString(append(d, ','), block), ':')
	d = append(event.AppendString(d, text), "}}"...)
	return write(b, "content_block_delta", d)
}

// begin appends the start of a block of type text or thinking.
func (e *Encoder) begin(b []byte, block string) []byte {
	d := append([]byte(nil), `{"type":"content_block_start","index":`...)
	d = strconv.AppendInt(d, int64(e.blocks), 10)
	d = append(d, `,"content_block":`...)
	if block == "thinking" {
		d = append(d, `{"type":"thinking","thinking":"","signature":""}}`...)
	} else {
		d = append(d, `{"type":"text","text":""}}`...)
	}
	e.open = block
	e.blocks++
	return write(b, "content_block_start", d)
}

// stop appends the end of the open block, if any.
func (e *Encoder) stop(b []byte) []byte {
	if e.open == "" {
		return b
	}
	e.open = ""
	d := strconv.AppendInt(append([]byte(nil), `{"type":"content_block_stop","index":`...), int64(e.blocks-1), 10)
	return write(b, "content_block_stop", append(d, '}'))
}

// Ping appends an event that keeps the connection alive.
func (e *Encoder) Ping(b []byte) []byte { return write(b, "ping", []byte(`{"type":"ping"}`)) }

// End appends the end of a complete message. reason is that of the turn; a nil u is a usage of zero tokens. A message without
// content gets one empty text, because clients read the first block without checking whether it exists.
func (e *Encoder) End(b []byte, reason string, u *event.Usage) []byte {
	if e.blocks == 0 {
		b = e.begin(b, "text")
	}
	b = e.stop(b)
	d := event.AppendString(append([]byte(nil), `{"type":"message_delta","delta":{"stop_reason":`...), stopReason(reason))
	d = append(d, `,"stop_sequence":null},"usage":`...)
	d = append(appendUsage(d, u), '}')
	b = write(b, "message_delta", d)
	return write(b, "message_stop", []byte(`{"type":"message_stop"}`))
}

// Fail appends an error event instead of the end. Official clients report it as an error of the API.
func (e *Encoder) Fail(b []byte, kind, message string) []byte {
	return write(b, "error", AppendError(nil, kind, message, ""))
}

// AppendError appends an error object of the API, which is the same in a stream and in the body of a response. request is the id of the
// request; it is left out if empty.
func AppendError(b []byte, kind, message, request string) []byte {
	b = event.AppendString(append(b, `{"type":"error","error":{"type":`...), kind)
	b = event.AppendString(append(b, `,"message":`...), message)
	b = append(b, '}')
	if request != "" {
		b = event.AppendString(append(b, `,"request_id":`...), request)
	}
	return append(b, '}')
}

// Block is a block of a message that isn't streamed: text, or thinking if Reasoning is true.
type Block struct {
	Reasoning bool
	Text      string
}

// AppendMessage appends the response to a request without stream. reason and u are as in End. Without blocks it writes one empty text.
func (e *Encoder) AppendMessage(b []byte, blocks []Block, reason string, u *event.Usage) []byte {
	b = event.AppendString(append(b, `{"id":`...), e.ID)
	b = event.AppendString(append(b, `,"type":"message","role":"assistant","model":`...), e.Model)
	b = append(b, `,"content":[`...)
	if len(blocks) == 0 {
		blocks = []Block{{}}
	}
	for i, p := range blocks {
		if i > 0 {
			b = append(b, ',')
		}
		if p.Reasoning {
			b = event.AppendString(append(b, `{"type":"thinking","thinking":`...), p.Text)
			b = append(b, `,"signature":""}`...)
		} else {
			b = append(event.AppendString(append(b, `{"type":"text","text":`...), p.Text), '}')
		}
	}
	b = event.AppendString(append(b, `],"stop_reason":`...), stopReason(reason))
	b = append(b, `,"stop_sequence":null,"usage":`...)
	return append(appendUsage(b, u), '}')
}

// stopReason maps the reason of a completed turn, which may be that of any provider, to one of the API's stop reasons. The API
// requires one, so any other reason is end_turn.
func stopReason(reason string) string {
	switch reason {
	case "max_tokens", "length", "max_output_tokens":
		return "max_tokens"
	case "stop_sequence", "model_context_window_exceeded":
		return reason
	}
	return "end_turn"
}

// appendUsage appends the usage object. Unlike in OpenAI's API, the input doesn't include the cached tokens.
func appendUsage(b []byte, u *event.Usage) []byte {
	if u == nil {
		u = &event.Usage{}
	}
	for _, f := range []struct {
		name string
		n    int64
	}{
		{`{"input_tokens":`, u.Input},
		{`,"output_tokens":`, u.Output},
		{`,"cache_creation_input_tokens":`, u.CacheWrite},
		{`,"cache_read_input_tokens":`, u.CacheRead},
	} {
		b = strconv.AppendInt(append(b, f.name...), f.n, 10)
	}
	return append(b, '}')
}

// write appends an event. Its error is ignored, because AppendEvent refuses only invalid names and ids.
func write(b []byte, name string, data []byte) []byte {
	b, _ = sse.AppendEvent(b, "", name, data)
	return b
}
