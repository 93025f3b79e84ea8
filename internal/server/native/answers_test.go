package native_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A producer whose turn asks a question gets the answer on its connection, and again on the next connection.
func TestIngestAnswers(t *testing.T) {
	h := newHarness(t, options{})
	id := h.create()
	wait := `{"type":"turn.wait","turn":"t","request":{"id":"q","kind":"approval","prompt":"Really?"}}` + "\n"
	p := h.produce(http.MethodPost, "/api/conversations/"+id+"/turns?dialect=leat").write(wait)
	p.acked(int64(len(wait)))
	turn := p.res.Header.Get("Leat-Turn")
	h.do(http.MethodPost, "/api/conversations/"+id+"/commands", fmt.Sprintf(`{"type":"answer","turn":%q,"request":"q","decision":"deny","text":"not now"}`, turn), "ack")
	told := func(p *producer) {
		t.Helper()
		for p.lines.Scan() {
			line := p.lines.Text()
			if !strings.Contains(line, `"answer"`) {
				continue
			}
			valid(t, "ingestAnswer", p.lines.Bytes())
			if !strings.Contains(line, `"id":"q","decision":"deny","text":"not now"`) {
				t.Errorf("got %s", line)
			}
			return
		}
		t.Fatal("no answer")
	}
	told(p)
	_ = p.conn.Close()
	p = h.produce(http.MethodPatch, "/api/turns/"+turn+"/ingest", "Upload-Offset", fmt.Sprint(len(wait)))
	told(p)
	p.write(`{"type":"turn.end","turn":"t","outcome":"completed"}` + "\n")
	for {
		l := p.line()
		if l == nil {
			t.Fatal("no last line")
		}
		if l.Ended != nil {
			if l.Outcome != "completed" {
				t.Errorf("%+v", l)
			}
			return
		}
	}
}
