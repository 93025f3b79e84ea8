package agui

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/dialecttest"
)

func TestGolden(t *testing.T) { dialecttest.Golden(t, Dialect(), dialecttest.OwnStreams(t, Dialect())) }

func TestConformance(t *testing.T) {
	dialecttest.Run(t, Dialect(), dialecttest.OwnStreams(t, Dialect()))
}

func FuzzDecode(f *testing.F) {
	for _, s := range dialecttest.OwnStreams(f, Dialect()) {
		f.Add(s.Body)
	}
	f.Fuzz(func(t *testing.T, body []byte) { dialecttest.Fuzz(t, Dialect(), body) })
}

// recorded has the transcripts of the protocol's own fixtures.
var recorded = map[string]string{
	"simple_text_message": `
turn turn state="ended" outcome="completed" upstream={"run":"run_01"}
message id1 turn="turn" role="assistant" ended=true
  p1 text join="\n\n" ended=true text="Hello, how can I help you today?"
`,
	"tool_call_sequence": `
turn turn state="ended" outcome="completed" upstream={"run":"run_02"}
message id1 turn="turn" role="assistant" ended=true
  p1 text join="\n\n" ended=true text="Let me search for that information."
  p2 tool name="search" call="tool_01" state="done" ended=true input="{\"query\": \"AG-UI protocol\"}" output="AG-UI is an event-based protocol for agent-user interactions."
  p3 text join="\n\n" ended=true text="Based on my search, AG-UI is an event-based protocol for agent-user interactions."
`,
	"state_management": `
turn turn state="ended" outcome="completed" upstream={"run":"run_03"}
message id1 turn="turn" role="assistant" ended=true
  p1 text join="\n\n" ended=true text="Updating count..."
`,
	"messages_snapshot": `
turn turn state="ended" outcome="completed" upstream={"run":"run_04"}
message id1 turn="turn" role="assistant" ended=true
  p1 text join="\n\n" ended=true text="The weather in New York is 72°F and sunny."
`,
	"messages_snapshot_activity_reasoning": `
turn turn state="ended" outcome="completed" upstream={"run":"run_04b"}
message id1 turn="turn" role="assistant" ended=true
  p1 reasoning ended=true text="Considering the file types to skip."
  p2 text join="\n\n" ended=true text="Indexing started."
`,
	"multiple_runs": `
turn turn state="ended" outcome="completed" upstream={"run":"run_05"}
message id1 turn="turn" role="assistant" ended=true
  p1 text join="\n\n" ended=true text="First run message."
`,
	"thinking_events": `
turn turn state="ended" outcome="completed" upstream={"run":"run_07"}
message id1 turn="turn" role="assistant" ended=true
  p1 reasoning ended=true text="Let me think about this... The user is asking about..."
  p2 text join="\n\n" ended=true text="Based on my analysis..."
`,
	"step_events": `
turn turn state="ended" outcome="completed" phase="Process" upstream={"run":"run_08"}
`,
	"error_handling": `
turn turn state="ended" outcome="failed" error={"code":"TIMEOUT","message":"Connection timeout"} upstream={"run":"run_09"}
message id1 turn="turn" role="assistant" ended=true
  p1 text join="\n\n" ended=true text="Processing..."
`,
	"custom_events": `
turn turn state="ended" outcome="completed" upstream={"run":"run_10"}
`,
	"concurrent_messages": `
turn turn state="ended" outcome="completed" upstream={"run":"run_11"}
message id1 turn="turn" role="assistant" ended=true
  p1 text join="\n\n" ended=true text="First message"
`,
	"text_message_chunk": `
turn turn state="ended" outcome="completed" upstream={"run":"run_12"}
message id1 turn="turn" role="assistant" ended=true
  p1 text join="\n\n" ended=true text="Complete message in a single chunk"
`,
	"activity_events": `
turn turn state="ended" outcome="completed" upstream={"run":"run_13"}
`,
	"reasoning_events": `
turn turn state="ended" outcome="completed" upstream={"run":"run_14"}
message id1 turn="turn" role="assistant" ended=true
  p1 reasoning ended=true text="Analyzing the request... considering options."
`,
	"thinking_text_message_legacy": `
turn turn state="ended" outcome="completed" upstream={"run":"run_15"}
message id1 turn="turn" role="assistant" ended=true
  p1 reasoning ended=true text="Let me think..."
`,
}

// TestRecordings decodes the protocol's own fixtures.
func TestRecordings(t *testing.T) {
	raw, err := os.ReadFile(dialecttest.Glob(t, "ag-ui/events.json")[0])
	if err != nil {
		t.Fatal(err)
	}
	var all map[string][]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(recorded)), slices.Sorted(maps.Keys(all))); diff != "" {
		t.Fatal(diff)
	}
	var corpus []dialecttest.Stream
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := dialecttest.Stream{Name: name}
		for _, e := range all[name] {
			s.Body = dialecttest.Frame(t, Dialect(), s.Body, dialect.Frame{Data: []byte(compact(t, e))})
		}
		corpus = append(corpus, s)
		st := dialect.NewStream(Dialect())
		ops, err := st.Write(s.Body)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(recorded[name][1:], dialecttest.Dump(dialecttest.Fold(t, ops))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	dialecttest.Run(t, Dialect(), corpus)
}

func compact(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Frames are decoded as encoding/json decodes them.
func FuzzWire(f *testing.F) { dialecttest.FuzzWire[frame](f, Dialect()) }
