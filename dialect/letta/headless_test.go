package letta

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/dialecttest"
)

// TestHeadless decodes recordings of Letta Code 0.32.18's headless mode with a scripted model. After an error there is no result
// line; the program only exits.
func TestHeadless(t *testing.T) {
	const usage = ` usage={"input":100,"output":50}`
	for name, want := range map[string]string{
		"error": `turn turn state="ended" outcome="failed" reason="llm_api_error" error={"code":"llm_error","message":"Stream ended without finish_reason","retryable":true} phase="retrying" upstream={"run":"local-run-4"}
message id1 turn="turn" role="assistant" ended=true stop="llm_api_error"
  p1 text join="\n\n" ended=true text="A text that breaks "
`,
		"refused": `turn turn state="ended" outcome="failed" reason="error" error={"code":"local_backend_error","message":"401: {\"message\":\"the scripted model refuses\",\"type\":\"invalid_request_error\"}"} upstream={"run":"local-run-1"}
`,
		"length": `turn turn state="ended" outcome="completed" reason="length"` + usage + ` upstream={"run":"local-run-1"}
message id1 turn="turn" role="assistant" ended=true stop="length"
  p1 text join="\n\n" ended=true text="A text that is cut at "
`,
		"retry": `turn turn state="ended" outcome="completed" reason="end_turn"` + usage + ` phase="retrying" upstream={"run":"local-run-2"}
message id1 turn="turn" role="assistant" ended=true stop="end_turn"
  p1 text join="\n\n" ended=true text="This is told twice. "
`,
		"error-after-tool": `turn turn state="ended" outcome="failed" reason="llm_api_error" error={"code":"llm_error","message":"Stream ended without finish_reason","retryable":true}` + usage + ` phase="retrying" upstream={"run":"local-run-5"}
message id1 turn="turn" role="assistant" ended=true
  p1 text join="\n\n" ended=true text="Let me see. "
  p2 tool name="Bash" call="call_518892" state="done" ended=true input="{\"command\":\"echo hi\",\"description\":\"x\"}" output="hi\n"
message id2 turn="turn" role="assistant" ended=true stop="llm_api_error"
  p1 text join="\n\n" ended=true text="Then it "
`,
	} {
		t.Run(name, func(t *testing.T) {
			s := dialecttest.Load(t, Code(), filepath.Join("testdata", "headless", name+".jsonl"), "")
			st := dialect.NewStream(Code())
			ops, err := st.Write(s.Body)
			if err != nil {
				t.Fatal(err)
			}
			last, err := st.Close()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, dialecttest.Dump(dialecttest.Fold(t, append(ops, last...)))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// If a stream continues after an error and then breaks off, it is incomplete: the error was not its end.
func TestHeadlessContinuesAfterError(t *testing.T) {
	b, err := os.ReadFile("testdata/headless/retry.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(b), "\n")
	for i, line := range lines {
		if !strings.Contains(line, `"type": "retry"`) {
			continue
		}
		st := dialect.NewStream(Code())
		if _, err := st.Write([]byte(strings.Join(lines[:i+2], ""))); err != nil {
			t.Fatal(err)
		}
		if _, err := st.Close(); err == nil {
			t.Error("Close accepts a stream that broke off in a retry")
		}
		return
	}
	t.Fatal("the recording has no retry")
}

// Letta Code repeats complete calls, and may repeat a turn's runs. Neither shows anything twice.
func TestHeadlessRepetitions(t *testing.T) {
	b, err := os.ReadFile("testdata/headless/error-after-tool.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	// The recording has the first run with a call and its result, and the second run until the model broke off.
	lines := strings.SplitAfter(string(b), "\n")[:10]
	const call = 6
	for name, frames := range map[string][]string{
		"once":            lines,
		"the call twice":  slices.Insert(slices.Clone(lines), call, lines[call]),
		"both runs twice": slices.Concat(lines, lines[1:]),
	} {
		t.Run(name, func(t *testing.T) {
			d, f := NewCode(), dialecttest.NewFolder()
			fold(t, f, d, frames...)
			fold(t, f, d, `{"type":"result","subtype":"success"}`)
			const want = `turn turn state="ended" outcome="completed" reason="end_turn" usage={"input":100,"output":50} upstream={"run":"local-run-2"}
message id1 turn="turn" role="assistant" ended=true
  p1 text join="\n\n" ended=true text="Let me see. "
  p2 tool name="Bash" call="call_518892" state="done" ended=true input="{\"command\":\"echo hi\",\"description\":\"x\"}" output="hi\n"
message id2 turn="turn" role="assistant" ended=true stop="end_turn"
  p1 text join="\n\n" ended=true text="Then it "
`
			if diff := cmp.Diff(want, dialecttest.Dump(&f.Transcript)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// If an attempt fails after its reasoning, the next one continues in the same message.
func TestHeadlessRetryAfterReasoning(t *testing.T) {
	b, err := os.ReadFile("testdata/headless/retry.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	// The recording has no reasoning, so the test adds some to both attempts, as an App Server sends it.
	thought := func(run, text string) string {
		return `{"type":"message","id":"ui-thought-` + run + `","message_type":"reasoning_message","reasoning":"` + text + `","run_id":"` + run + `","seq_id":1}` + "\n"
	}
	lines := strings.SplitAfter(regexp.MustCompile(`"seq_id": (\d)`).ReplaceAllString(string(b), `"seq_id": 1$1`), "\n")
	again := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, `"type": "retry"`) }) + 1
	for name, second := range map[string]string{"with reasoning again": thought("local-run-2", "second thought"), "without": ""} {
		t.Run(name, func(t *testing.T) {
			d, f := NewCode(), dialecttest.NewFolder()
			fold(t, f, d, slices.Concat(lines[:1], []string{thought("local-run-1", "first thought")}, lines[1:again], strings.SplitAfter(second, "\n")[:strings.Count(second, "\n")], lines[again:len(lines)-1])...)
			want := `turn turn state="ended" outcome="completed" reason="end_turn" usage={"input":100,"output":50} phase="retrying" upstream={"run":"local-run-2"}
message id1 turn="turn" role="assistant" ended=true stop="end_turn"
  p1 reasoning ended=true
  p2 text join="\n\n" ended=true text="This is told twice. "
`
			if second != "" {
				want = strings.Replace(want, ` text="This is told twice. "`, `
  p3 reasoning ended=true text="second thought"
  p4 text join="\n\n" ended=true text="This is told twice. "`, 1)
			}
			if diff := cmp.Diff(want, dialecttest.Dump(&f.Transcript)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
