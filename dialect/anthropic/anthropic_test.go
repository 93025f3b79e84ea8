package anthropic

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/dialecttest"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

func TestRecordings(t *testing.T) {
	all := dialecttest.LoadAll(t, Dialect(), "anthropic/*")
	dialecttest.Run(t, Dialect(), all)
	dialecttest.Golden(t, Dialect(), all)
}

func TestConformance(t *testing.T) {
	dialecttest.Run(t, Dialect(), dialecttest.OwnStreams(t, Dialect()))
}

// load decodes one recording at once.
func load(t *testing.T, path string) *transcript.Transcript {
	t.Helper()
	body := dialecttest.Load(t, Dialect(), path, "").Body
	s := dialect.NewStream(Dialect())
	ops, err := s.Write(body)
	if err != nil {
		t.Fatal(err)
	}
	rest, err := s.Close()
	if err != nil {
		t.Fatal(err)
	}
	return dialecttest.Fold(t, append(ops, rest...))
}

// TestDumps has the exact transcripts of the streams in testdata.
func TestDumps(t *testing.T) {
	for name, want := range map[string]string{
		"text": `
turn turn state="ended" outcome="completed" reason="end_turn" usage={"model":"claude-test-1","input":10,"output":20,"cache_read":4,"cache_write":3} model="claude-test-1"
message id1 turn="turn" role="assistant" ended=true stop="end_turn"
  p1 text join="\n\n" ended=true text="Hello, wörld 👋\n"
`,
		"characters": `
turn turn state="ended" outcome="completed" reason="end_turn" usage={"model":"claude-test-1","input":1,"output":9} model="claude-test-1"
message id1 turn="turn" role="assistant" ended=true stop="end_turn"
  p1 text join="\n\n" ended=true text="smile 😀 café \"quoted\" �"
`,
		"citations": `
turn turn state="ended" outcome="completed" reason="end_turn" usage={"model":"claude-test-1","input":10,"output":20,"cache_read":4,"cache_write":3} model="claude-test-1"
message id1 turn="turn" role="assistant" ended=true stop="end_turn"
  p1 reasoning ended=true text="Let me search."
  p2 text join="\n\n" ended=true text="I will search."
  p3 tool name="web_search" call="srv_1" state="done" ended=true input="{\"query\": \"rain today\"}" output="[{\"page_age\":null,\"title\":\"Rain \u0026 wind\",\"type\":\"web_search_result\",\"url\":\"https://example.org/a\"}]"
  p4 text join="\n\n" ended=true text="According to the forecast, "
  p5 text ended=true text="it will rain"
  p6 text ended=true text=", and then clear up."
`,
		"tools": `
turn turn state="ended" outcome="completed" reason="tool_use" usage={"model":"claude-test-1","input":10,"output":20,"cache_read":4,"cache_write":3} model="claude-test-1"
message id1 turn="turn" role="assistant" ended=true stop="tool_use"
  p1 text join="\n\n" ended=true text="Two things."
  p2 tool name="bash_code_execution" call="srv_1" state="failed" error={"code":"exit_status","message":"exit status 2"} ended=true input="{\"command\":\"ls\"}" output="a\nb\n" stderr="warn\n"
  p3 tool name="web_fetch" call="srv_2" state="failed" error={"code":"url_not_allowed","message":"url not allowed"} ended=true input="{\"url\":\"https://example.org\"}"
  p4 tool name="add" call="mcp_1" state="done" ended=true input="{\"a\":1}" output="one\ntwo"
  p5 tool name="code_execution" call="srv_0" state="done" ended=true output="late\n"
  p6 tool name="now" call="toolu_1" ended=true input="{}"
  p7 tool name="add" call="toolu_2" ended=true input="{\"a\":2}"
`,
		"files": `
turn turn state="ended" outcome="completed" reason="end_turn" usage={"model":"claude-test-1","input":10,"output":20} model="claude-test-1"
message id1 turn="turn" role="assistant" ended=true stop="end_turn"
  p1 tool name="bash_code_execution" call="srv_1" state="done" ended=true input="{\"command\":\"make report\"}" output="file_id: file_1\nfile_id: file_2\n"
  p2 tool name="code_execution" call="srv_2" state="done" ended=true input="{\"code\":\"plot()\"}" output="saved\nfile_id: file_3\n"
`,
		"unknown": `
turn turn state="ended" outcome="completed" reason="length" usage={"model":"claude-test-2","input":10,"output":20,"cache_read":4,"cache_write":3} model="claude-test-2"
message id1 turn="turn" role="assistant" ended=true stop="length"
  p1 reasoning title="redacted" ended=true
  p2 text join="\n\n" ended=true text="Given at the start"
  p3 text join="\n\n" ended=true text="and anew"
`,
		"spliced": `
turn turn state="ended" outcome="completed" reason="end_turn" usage={"model":"claude-test-1","input":21,"output":8,"cache_read":8,"cache_write":6} model="claude-test-1"
message id1 turn="turn" role="assistant" ended=true stop="aborted"
  p1 text join="\n\n" ended=true text="Half a sentence"
message id2 turn="turn" role="assistant" ended=true stop="end_turn"
  p1 text join="\n\n" ended=true text="All anew."
`,
		"paused": `
turn turn state="ended" outcome="completed" reason="end_turn" usage={"model":"claude-test-1","input":40,"output":11,"cache_read":8,"cache_write":6} model="claude-test-1"
message id1 turn="turn" role="assistant" ended=true stop="pause_turn"
  p1 tool name="web_search" call="srv_1" state="done" ended=true input="{}" output="[]"
message id2 turn="turn" role="assistant" ended=true stop="end_turn"
  p1 text join="\n\n" ended=true text="Found."
`,
		"refusal": `
turn turn state="ended" outcome="failed" reason="refusal" error={"code":"refusal","message":"Not this."} usage={"model":"claude-test-1","input":18,"output":5,"cache_read":4,"cache_write":3} model="claude-test-1"
message id1 turn="turn" role="assistant" ended=true stop="refusal"
`,
		"overloaded": `
turn turn state="ended" outcome="failed" reason="error" error={"code":"overloaded_error","message":"Overloaded","retryable":true} usage={"model":"claude-test-1","input":10,"output":1,"cache_read":4,"cache_write":3} model="claude-test-1"
message id1 turn="turn" role="assistant" ended=true stop="error"
  p1 text join="\n\n" ended=true text="So far"
`,
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(want[1:], dialecttest.Dump(load(t, "testdata/"+name+".sse"))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRecordedTexts has the exact texts of the recordings that are easy to decode wrongly.
func TestRecordedTexts(t *testing.T) {
	const search = `Based on my search results, here are the key tech news developments from today (September 26, 2025):

## Apple News
Apple today announced the grand reopening of Apple Ginza on Friday, September 26, located in the vibrant Ginza district where Apple's retail journey in Japan began more than two decades ago. Apple Ginza opens to customers Friday, September 26, at 10 a.m. JST. Opened in 2003 as Apple's first store outside the U.S., Apple Ginza now returns in an all-new four-story design that brings together the best of Apple's products, services, and experiences in one beautifully reimagined space.

## Recent Apple Product Updates
Apple is considering building a pilot production line for a foldable iPhone in Taiwan, with plans to launch the new foldable iPhone in 2026. Currently, multiple sources have confirmed that Apple plans to release its first foldable iPhone in 2026 as part of the iPhone 18 lineup.

OpenAI launches ChatGPT Pulse, proactively writing your morning briefing. OpenAI is rolling out a new feature in ChatGPT called Pulse, which generates personalized reports while users sleep. Pulse provides users with a quick overview of their day with 5-10 briefings, designed to encourage them to check ChatGPT first thing in the morning.

## Major Tech Industry Developments from Yesterday

On September 25, 2025, headlines were dominated by seismic shifts in AI infrastructure, potential blockbuster partnerships between legacy chip giants, and escalating regulatory battles that could redefine global innovation.

Key highlights include:
- Microsoft shook up its AI stack by integrating Anthropic's models into Copilot for Microsoft 365, reducing OpenAI dependency and boosting productivity tools like real-time analytics.
- Oracle followed with a $15 billion bond raise for cloud expansion, riding AI demand waves.
- Google launched Mixboard, an AI mood board app with Gemini-powered suggestions for designers, and rolled conversational editing to more Android phones in Photos.

## Recent iOS Updates
With iOS 26 officially launched, Apple is moving forward with iOS 26.1. Apple released iOS 26 on September 15, bringing the Liquid Glass redesign to the iPhone.

The main tech story today appears to be Apple's significant retail milestone with the reopening of their redesigned flagship Ginza store in Tokyo, marking over 20 years since their first international retail expansion.`
	want := map[string]string{
		"duplicate-message-start.jsonl": "Hello, World!",
		"web-search-tool.1.jsonl":       search,
		"clear-thinking.1.jsonl":        "925 ÷ 5 = 185",
		"fallback.jsonl":                "The printing press was invented by Johannes Gutenberg around 1440.",
		"json-tool.2.jsonl":             "I'll invoke the JSON response tool.",
		"refusal.jsonl":                 "",
	}
	for _, path := range dialecttest.Glob(t, "anthropic/*") {
		name := filepath.Base(path)
		text, ok := want[name]
		if !ok {
			continue
		}
		delete(want, name)
		tr := load(t, path)
		if diff := cmp.Diff(text, dialecttest.Visible(tr)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if len(tr.Messages) != 1 {
			t.Errorf("%s: %d messages", name, len(tr.Messages))
		}
	}
	if len(want) > 0 {
		t.Errorf("recordings are missing: %v", want)
	}
}

const begin = `{"type":"message_start","message":{"id":"m","usage":{}}}`

func TestInvalid(t *testing.T) {
	for name, frames := range map[string][]string{
		"no object":              {`[]`},
		"no type":                {`{}`},
		"block before start":     {`{"type":"content_block_start","index":0,"content_block":{"type":"text"}}`},
		"stop before start":      {`{"type":"message_stop"}`},
		"start of nothing":       {`{"type":"message_start"}`},
		"block of nothing":       {begin, `{"type":"content_block_start","index":0}`},
		"delta of nothing":       {begin, `{"type":"content_block_start","index":0,"content_block":{"type":"text"}}`, `{"type":"content_block_delta","index":0}`},
		"delta of no block":      {begin, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}`},
		"text of the wrong type": {begin, `{"type":"content_block_start","index":0,"content_block":{"type":"text"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":5}}`},
		"delta after its end":    {begin, `{"type":"content_block_start","index":0,"content_block":{"type":"text"}}`, `{"type":"content_block_stop","index":0}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			d := Dialect().Decoder()
			for i, f := range frames {
				ops, err := d.Decode(dialect.Frame{Data: []byte(f)})
				if i < len(frames)-1 {
					if err != nil {
						t.Fatal(err)
					}
					continue
				}
				var bad *dialect.Error
				if !errors.As(err, &bad) || bad.Frame != len(frames) || bad.Dialect != "anthropic" || len(ops) > 0 {
					t.Errorf("%v, %d operations", err, len(ops))
				}
			}
		})
	}
}

// The number of blocks and messages that a hostile server can open is limited.
func TestBounds(t *testing.T) {
	for name, format := range map[string]string{
		"open blocks": `{"type":"content_block_start","index":%d,"content_block":{"type":"hologram"}}`,
		"parts":       `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"%d"}}`,
		"messages":    `{"type":"message_start","message":{"id":"%d"}}`,
	} {
		d := Dialect().Decoder()
		_, err := d.Decode(dialect.Frame{Data: []byte(begin)})
		n := 0
		for ; err == nil && n < 2*maxParts; n++ {
			_, err = d.Decode(dialect.Frame{Data: fmt.Appendf(nil, format, n)})
		}
		var bad *dialect.Error
		if !errors.As(err, &bad) {
			t.Errorf("%s: %d accepted: %v", name, n, err)
		}
	}
}

// The type is the name of the SSE event if the data has none.
func TestNames(t *testing.T) {
	d := Dialect().Decoder()
	if ops, err := d.Decode(dialect.Frame{Event: "ping", Data: []byte(`{}`)}); err != nil || len(ops) > 0 {
		t.Errorf("%v, %v", ops, err)
	}
	ops, err := d.Decode(dialect.Frame{Event: "error", Data: []byte(`{"error":{"type":"invalid_request_error"}}`)})
	if err != nil || len(ops) != 1 {
		t.Fatalf("%v, %v", ops, err)
	}
	want := &event.Body{Outcome: event.Failed, Reason: "error", Error: &event.Error{Code: "invalid_request_error", Message: "invalid_request_error"}}
	if diff := cmp.Diff(want, ops[0].Body); diff != "" {
		t.Error(diff)
	}
}

// Unknown blocks, deltas and events are counted.
func TestCounts(t *testing.T) {
	body := dialecttest.Load(t, Dialect(), "testdata/unknown.sse", "").Body
	s := dialect.NewStream(Dialect())
	if _, err := s.Write(body); err != nil {
		t.Fatal(err)
	}
	want := dialect.Unknown{"hologram": 1, "hologram_delta": 1, "sparkle_delta": 1, "message_hint": 1}
	if diff := cmp.Diff(want, s.Unknown()); diff != "" {
		t.Error(diff)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range dialecttest.OwnStreams(f, Dialect()) {
		f.Add(s.Body)
	}
	f.Fuzz(func(t *testing.T, body []byte) { dialecttest.Fuzz(t, Dialect(), body) })
}

// scan refuses every form but the usual one, so that encoding/json decodes it.
func TestScan(t *testing.T) {
	const good = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}  }`
	if _, _, token, ok := scan([]byte(good)); !ok || string(token) != `"x"` {
		t.Errorf("scan refuses %s", good)
	}
	for _, edit := range [][2]string{{`"x"`, `null`}, {`"x"`, `"x","y":1`}, {`text_delta`, `sparkle_delta`}, {`  }`, `}}`}, {`0`, `-1`}, {`:`, `: `}} {
		s := strings.Replace(good, edit[0], edit[1], 1)
		if _, _, _, ok := scan([]byte(s)); ok {
			t.Errorf("scan accepts %s", s)
		}
	}
}

// Frames are decoded as encoding/json decodes them.
func FuzzWire(f *testing.F) { dialecttest.FuzzWire[frame](f, Dialect(), "anthropic/*") }
