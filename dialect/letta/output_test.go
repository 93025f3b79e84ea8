package letta

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leat-dev/leat/dialect/dialecttest"
	"github.com/leat-dev/leat/event"
)

// A tool's output arrives as snapshots, which the App Server (0.32.18) limits to the last 30,000 characters. It stores only about
// 2,000 of them. Readers keep everything they have seen, in order.
func TestLongOutput(t *testing.T) {
	lines := func(from, to int) string {
		var b strings.Builder
		for i := from; i <= to; i++ {
			fmt.Fprintf(&b, "line %d of the output\n", i)
		}
		return b.String()
	}
	printed := func(s string) string {
		return fmt.Sprintf(`{"type":"stream_delta","delta":{"message_type":"tool_return_message","id":"synthetic-tool-return-stream-c1","run_id":"r1","tool_call_id":"c1","status":"success","tool_return":%q}}`, s)
	}
	gave := func(s string) string {
		return fmt.Sprintf(`{"type":"stream_delta","delta":{"message_type":"tool_return_message","id":"synthetic-tool-return-1","run_id":"r1","tool_call_id":"c1","status":"success","tool_return":%q}}`, s)
	}
	const call = `{"type":"stream_delta","delta":{"message_type":"approval_request_message","id":"m","tool_call":{"tool_call_id":"c1","name":"Bash","arguments":"{}"},"run_id":"r1","seq_id":1}}`
	dots := strings.Repeat(".", 2*maxTail)
	for name, c := range map[string]struct {
		frames []string
		output string
		mark   string
	}{
		"shortened at the end": {
			[]string{printed(lines(1, 100)), gave(lines(1, 9) + "[Output truncated]")}, lines(1, 100), fmt.Sprintf(`{"storedBytes":%d}`, len(lines(1, 9)+"[Output truncated]")),
		},
		"a sliding window": {
			[]string{printed(lines(1, 100)), printed(lines(51, 150)), printed(lines(120, 219)), gave("[Output truncated]")}, lines(1, 219), `{"storedBytes":18}`,
		},
		"a gap before the window": {
			[]string{printed(lines(1, 100)), printed(lines(151, 250)), printed(lines(200, 299)), gave("[Output truncated]")}, lines(1, 100), `{"storedBytes":18}`,
		},
		"a window with an ambiguous start": {
			[]string{printed("from here " + dots), printed(dots + "."), gave("[Output truncated]")}, "from here " + dots, `{"storedBytes":18}`,
		},
		"a gap, and complete at the end": {
			[]string{printed(lines(1, 100)), printed(lines(151, 250)), gave(lines(1, 251))}, lines(1, 251), "",
		},
		"with a line before it at the end": {
			[]string{printed(lines(1, 100)), gave("Exit code: 3\n" + lines(1, 100))}, "Exit code: 3\n" + lines(1, 100), "",
		},
		"never streamed": {[]string{gave("short")}, "short", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, f := NewCode(), dialecttest.NewFolder()
			fold(t, f, d, call)
			seen := ""
			for _, frame := range c.frames {
				st, err := d.State()
				if err != nil {
					t.Fatal(err)
				}
				d = NewCode()
				if err := d.Restore(st); err != nil {
					t.Fatal(err)
				}
				fold(t, f, d, frame)
				p := f.Transcript.Messages[0].Parts[0]
				if now := p.Text(event.Output); !strings.Contains(now, seen) {
					t.Errorf("readers saw %d bytes, which were replaced by %d others", len(seen), len(now))
				} else {
					seen = now
				}
			}
			p := f.Transcript.Messages[0].Parts[0]
			if got := p.Text(event.Output); got != c.output || string(p.Data) != c.mark {
				t.Errorf("the output has %d bytes, marked %s; want %d, marked %s", len(got), p.Data, len(c.output), c.mark)
			}
		})
	}
}
