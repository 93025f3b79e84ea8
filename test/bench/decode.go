package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/all"
	"github.com/leat-dev/leat/event"
)

// stream is a response body in one dialect, in three pieces. Only the decoding of deltas is timed.
type stream struct {
	dialect string
	note    string // added to the figure's name
	head    []byte
	deltas  []byte
	tail    []byte
	text    string // expected text
}

// words returns the text of delta i. Like the deltas of real models, it is about one word.
func words(i int) string { return fmt.Sprintf(" word%04d", i%10_000) }

// streams returns bodies with n deltas of the same texts in dialects of different cost.
func streams(n int) []stream {
	var text strings.Builder
	for i := range n {
		text.WriteString(words(i))
	}
	return []stream{
		anthropicStream(n, text.String()),
		elizaStream(n, text.String()),
		leatStream(n, text.String()),
		openclawStream(n, text.String()),
	}
}

// anthropicStream returns a body of the Messages API of Anthropic: SSE with a type in the event's name and again in its JSON, which
// the decoder has to parse.
func anthropicStream(n int, text string) stream {
	sse := func(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }
	var d strings.Builder
	for i := range n {
		d.WriteString(sse("content_block_delta",
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`+words(i)+`"}}`))
	}
	return stream{
		dialect: "anthropic",
		head: []byte(sse("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],`+
			`"usage":{"input_tokens":10,"output_tokens":1}}}`) +
			sse("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)),
		deltas: []byte(d.String()),
		tail: []byte(sse("content_block_stop", `{"type":"content_block_stop","index":0}`) +
			sse("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`) +
			sse("message_stop", `{"type":"message_stop"}`)),
		text: text,
	}
}

// elizaStream returns a body of the plainest dialect: one short line of JSON for each delta, and no frames around a message.
func elizaStream(n int, text string) stream {
	var d strings.Builder
	for i := range n {
		d.WriteString(`{"type":"chunk","text":"` + words(i) + `"}` + "\n")
	}
	return stream{dialect: "eliza-actions", deltas: []byte(d.String()), tail: []byte(`{"type":"done"}` + "\n"), text: text}
}

// leatStream returns a body of Leat's own dialect, whose operations need no mapping but are validated like all others.
func leatStream(n int, text string) stream {
	var d strings.Builder
	for i := range n {
		d.WriteString(`{"type":"part.append","message":"m","part":"p","text":"` + words(i) + `"}` + "\n")
	}
	return stream{
		dialect: "leat",
		head:    []byte(`{"type":"message.start","message":"m","role":"assistant"}` + "\n" + `{"type":"part.start","message":"m","part":"p","kind":"text"}` + "\n"),
		deltas:  []byte(d.String()),
		tail:    []byte(`{"type":"part.end","message":"m","part":"p"}` + "\n" + `{"type":"message.end","message":"m"}` + "\n" + `{"type":"turn.end","outcome":"completed"}` + "\n"),
		text:    text,
	}
}

// openclawStream returns a stream of OpenClaw's protocol 4. It sends each delta twice, in an agent frame and in a chat frame, and
// both contain the whole text so far. The two frames count as one delta.
func openclawStream(n int, text string) stream {
	const run = "f3b6b9cb-de84-408f-ab9e-a029b7a6c11c"
	var d strings.Builder
	whole := 0
	for i := range n {
		w := words(i)
		whole += len(w)
		fmt.Fprintf(&d, `{"type":"event","event":"agent","payload":{"runId":%q,"stream":"assistant","data":{"text":%q,"delta":%q,"itemId":"i:1"},`+
			`"sessionKey":"agent:main:s","agentId":"main","seq":%d,"ts":1795194262675,"isHeartbeat":false},"seq":%d}`+"\n", run, text[:whole], w, 2*i+2, 2*i+2)
		fmt.Fprintf(&d, `{"type":"event","event":"chat","payload":{"runId":%q,"sessionKey":"agent:main:s","agentId":"main","seq":%d,"state":"delta","deltaText":%q,`+
			`"message":{"role":"assistant","content":[{"type":"text","text":%q}],"timestamp":1795194262677}},"seq":%d}`+"\n", run, 2*i+3, w, text[:whole], 2*i+3)
	}
	return stream{
		dialect: "openclaw",
		note:    fmt.Sprintf(", two frames with the whole text (up to %d bytes)", len(text)),
		head: []byte(`{"type":"event","event":"agent","payload":{"runId":"` + run + `","stream":"lifecycle","data":{"phase":"start","startedAt":1},` +
			`"sessionKey":"agent:main:s","agentId":"main","seq":1,"ts":1},"seq":1}` + "\n"),
		deltas: []byte(d.String()),
		tail: fmt.Appendf(nil, `{"type":"event","event":"chat","payload":{"runId":%q,"sessionKey":"agent:main:s","agentId":"main","seq":%d,"state":"final",`+
			`"message":{"role":"assistant","content":[{"type":"text","text":%q}],"timestamp":1}},"seq":%d}`+"\n", run, 2*n+2, text, 2*n+2),
		text: text,
	}
}

const (
	decodeTarget = 2    // µs a delta
	readSize     = 4096 // bytes passed to the decoder at once, a typical read from a socket
)

// benchDecode measures the CPU time and the allocations of decoding a delta, by dialect. The baseline is json.Valid on the same bytes, the
// least that a decoder of JSON can cost.
func benchDecode(ctx context.Context, e *env) ([]measure, error) {
	registry := all.Registry()
	var ms []measure
	for _, s := range streams(e.size.decodeDeltas) {
		d, err := registry.Lookup(s.dialect)
		if err != nil {
			return nil, err
		}
		if err := s.check(d); err != nil {
			return nil, err
		}
		took, allocs, err := s.time(ctx, d, e.size)
		if err != nil {
			return nil, err
		}
		ms = append(
			ms,
			measure{name: s.dialect + ", a delta" + s.note, unit: "µs CPU", value: took, most: decodeTarget},
			measure{name: s.dialect + ", allocations a delta", value: allocs},
			measure{name: s.dialect + ", baseline: json.Valid on the same bytes", unit: "µs", value: s.valid(e.size)},
		)
	}
	return ms, nil
}

// check decodes the body once and compares its text, so that no broken decoder is timed.
func (s *stream) check(d dialect.Dialect) error {
	st := dialect.NewStream(d)
	var text strings.Builder
	for _, b := range [][]byte{s.head, s.deltas, s.tail} {
		ops, err := st.Write(b)
		if err != nil {
			return err
		}
		collect(&text, ops)
	}
	ops, err := st.Close()
	if err != nil {
		return err
	}
	collect(&text, ops)
	if text.String() != s.text {
		return fmt.Errorf("%s: decoded %d bytes of text, want %d", s.dialect, text.Len(), len(s.text))
	}
	return nil
}

// collect appends the text of the operations to w.
func collect(w *strings.Builder, ops []event.Event) {
	for i := range ops {
		if ops[i].Type == event.PartAppend && ops[i].Field == event.Text {
			w.WriteString(ops[i].Text)
		}
	}
}

// cpuTime returns the CPU time of this process, including the garbage collector's. Unlike elapsed time, it isn't affected by other
// programs.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // can't fail for RUSAGE_SELF
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// time decodes the deltas repeatedly for z.decodeTime of CPU time, in pieces of readSize, and returns the microseconds and allocations of
// one delta. Each round uses a new decoder, because a decoder's text grows.
func (s *stream) time(ctx context.Context, d dialect.Dialect, z size) (us, allocs float64, err error) {
	// The counter of allocations is the process's. Nothing else runs in it during a benchmark, so the difference is the decoder's,
	// plus a few of the loop.
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var spent time.Duration
	n := 0
	for spent < z.decodeTime {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		st := dialect.NewStream(d)
		if _, err := st.Write(s.head); err != nil {
			return 0, 0, err
		}
		start := cpuTime()
		// Pieces of a socket's read end anywhere in a frame, so the decoder's handling of incomplete lines is part of the figure.
		for b := s.deltas; len(b) > 0; {
			k := min(readSize, len(b))
			if _, err := st.Write(b[:k]); err != nil {
				return 0, 0, err
			}
			b = b[k:]
		}
		spent += cpuTime() - start
		n += z.decodeDeltas
	}
	runtime.ReadMemStats(&after)
	return micros(spent) / float64(n), float64(after.Mallocs-before.Mallocs) / float64(n), nil
}

// valid returns the microseconds of CPU time for finding and validating the JSON payload of one delta.
func (s *stream) valid(z size) float64 {
	var spent time.Duration
	n := 0
	for spent < z.decodeTime/2 {
		start := cpuTime()
		for line := range bytes.Lines(s.deltas) {
			line = bytes.TrimPrefix(line, []byte("data: "))
			if len(line) > 1 && line[0] == '{' && !json.Valid(line) {
				panic("bench: the generated frame isn't valid JSON")
			}
		}
		spent += cpuTime() - start
		n += z.decodeDeltas
	}
	return micros(spent) / float64(n)
}
