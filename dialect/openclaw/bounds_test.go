package openclaw

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leat-dev/leat/dialect"
)

// A gateway can't make the state grow without limit: the stream fails at each limit.
func TestBounds(t *testing.T) {
	one := func(n int) *script { return &script{run: fmt.Sprint("r", n), session: "s"} }
	at := func(i int) *script { s := one(0); s.seq = i; return s }
	row := func(content string) string {
		return `{"type":"res","ok":true,"payload":{"messages":[{"role":"assistant","__openclaw":{"runId":"r0"},"content":[` + content + `]}]}}`
	}
	many := func(n int, block func(i int) string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = block(i)
		}
		return strings.Join(all, ",")
	}
	media := func(n int) any {
		urls := make([]string, n)
		for i := range urls {
			urls[i] = fmt.Sprintf("/m/%d.png", i)
		}
		return fields{"mediaUrls": urls}
	}
	// parts gives a run all the parts but one that it may have.
	parts := func(r *run) { r.Tools = slices.Repeat([]*tool{{Call: "known", IsOver: true}}, maxParts-1) }
	for name, tt := range map[string]struct {
		n     int // frames that are taken
		fill  func(*run)
		frame func(i int) string
		want  error
	}{
		"runs": {maxRuns, nil, func(i int) string { return one(i).agent("lifecycle", fields{"phase": "start"}) }, errRuns},
		"sessions": {maxSessions, nil, func(i int) string {
			return fmt.Sprintf(`{"type":"event","event":"agent","payload":{"runId":"r0","spawnedBy":"s0","sessionKey":"s%d","stream":"lifecycle","data":{"phase":"start"}}}`, i)
		}, errSessions},
		"a session's name": {0, nil, func(int) string {
			return (&script{run: "r", session: strings.Repeat("s", maxSession+1)}).item("1", "a")
		}, errLong},
		"a phase": {0, nil, func(int) string { return one(0).agent("run_status", fields{"phase": strings.Repeat("p", 300)}) }, errLong},
		"texts":   {2, parts, func(i int) string { return at(i).item(fmt.Sprint(i), "a") }, errParts},
		"thoughts": {2, parts, func(i int) string {
			return at(i).agent("thinking", fields{"text": fmt.Sprint(i), "delta": fmt.Sprint(i)})
		}, errParts},
		"tools": {2, parts, func(i int) string { return at(i).tool("start", fmt.Sprint(i), nil) }, errParts},
		"media": {2, parts, func(i int) string { return at(i).agent("assistant", media(1<<(16*(i-1)))) }, errParts},
		"texts of a history": {2, parts, func(i int) string {
			return row(many(1<<(15*(i-1)), func(i int) string { return fmt.Sprintf(`{"type":"text","text":"b%d"}`, i) }))
		}, errParts},
		"texts of a history between two that are shown": {3, func(r *run) { r.Read = make([]readText, maxRead-1) }, func(i int) string {
			if i < 3 {
				return at(i).item(fmt.Sprint(i), []string{"", "first", "last"}[i])
			}
			return row(`{"type":"text","text":"first"},` + many(1<<15, func(i int) string { return fmt.Sprintf(`{"type":"text","text":"b%d"}`, i) }))
		}, errRows},
		"tools of a history": {2, parts, func(i int) string {
			return row(many(1<<(15*(i-1)), func(i int) string { return fmt.Sprintf(`{"type":"toolCall","id":"c%d","name":"x"}`, i) }))
		}, errParts},
	} {
		t.Run(name, func(t *testing.T) {
			d := &decoder{}
			for i := range tt.n {
				b := one(0).agent("lifecycle", fields{"phase": "start"})
				if i > 0 || tt.fill == nil {
					b = tt.frame(i)
				}
				if _, err := d.Decode(dialect.Frame{Data: []byte(b)}); err != nil {
					t.Fatalf("frame %d: %v", i+1, err)
				}
				if i == 0 && tt.fill != nil {
					tt.fill(d.Runs[0])
				}
			}
			ops, err := d.Decode(dialect.Frame{Data: []byte(tt.frame(tt.n))})
			var bad *dialect.Error
			if !errors.As(err, &bad) || !errors.Is(err, tt.want) || len(ops) > 0 {
				t.Errorf("%d operations, %v; want %v", len(ops), err, tt.want)
			}
		})
	}
}
