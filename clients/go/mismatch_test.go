package leat_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
)

// wrong is a gateway whose first stream ends a text otherwise than it was sent; the second begins with the right snapshot.
type wrong struct {
	streams int
	cursors []string
	reports []string
}

func (g *wrong) RoundTrip(r *http.Request) (*http.Response, error) {
	res := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Request: r}
	if r.Method == http.MethodPost {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		g.reports = append(g.reports, r.URL.Path+" "+string(b))
		res.StatusCode, res.Body = http.StatusNoContent, http.NoBody
		return res, nil
	}
	g.streams++
	g.cursors = append(g.cursors, r.Header.Get("Last-Event-ID"))
	frames := []string{`{"type":"hello","protocol":"leat/1"}`}
	if g.streams == 1 {
		frames = append(frames,
			`{"type":"snapshot","conversation":"c","cursor":"e.0","epoch":"e","reset":true,"transcript":{"seq":0,"messages":[],"turns":[]}}`,
			`{"type":"batch","conversation":"c","cursor":"e.4","seq":4,"events":[`+
				`{"seq":1,"at":1,"turn":"t","type":"turn.start"},{"seq":2,"at":1,"turn":"t","type":"message.start","message":"m","role":"assistant"},`+
				`{"seq":3,"at":1,"turn":"t","type":"part.start","message":"m","part":"p","kind":"text"},`+
				`{"seq":4,"at":1,"turn":"t","type":"part.append","message":"m","part":"p","offset":0,"text":"Hallo"}]}`,
			`{"type":"batch","conversation":"c","cursor":"e.5","seq":5,"events":[`+
				`{"seq":5,"at":1,"turn":"t","type":"part.end","message":"m","part":"p","sums":{"text":{"length":5,"crc":7}}}]}`)
	} else {
		frames = append(frames, `{"type":"snapshot","conversation":"c","cursor":"e.5","epoch":"e","reset":true,"transcript":{"seq":5,"messages":[{"id":"m","role":"assistant","at":1,"seq":2,"parts":[{"id":"p","kind":"text","text":"Hello","ended":true,"at":1}]}],"turns":[]}}`)
	}
	var b strings.Builder
	for _, f := range frames {
		b.WriteString("data: " + f + "\n\n")
	}
	out, in := io.Pipe()
	go func() { _, _ = io.WriteString(in, b.String()) }()
	context.AfterFunc(r.Context(), func() { in.CloseWithError(r.Context().Err()) })
	res.Body = out
	return res, nil
}

// A text that differs from its checksum is reported without its content, and corrected by a snapshot.
func TestMismatch(t *testing.T) {
	t.Parallel()
	g := &wrong{}
	c := &leat.Client{URL: "http://gateway", HTTP: &http.Client{Transport: g}}
	err := c.Follow(t.Context(), "c", func(u leat.Update) error {
		if len(u.Transcript.Messages) > 0 && u.Transcript.Messages[0].Visible() == "Hello" {
			return leat.ErrStop
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"", ""}, g.cursors); diff != "" {
		t.Error("cursors:", diff)
	}
	if len(g.reports) != 1 || strings.Contains(g.reports[0], "allo") {
		t.Fatalf("reports: %q", g.reports)
	}
	path, body, _ := strings.Cut(g.reports[0], " ")
	var got leat.Mismatch
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	want := leat.Mismatch{
		Client: "go", Turn: "t", Message: "m", Part: "p", Field: "text", Seq: 5,
		Have: event.Sum{Length: 5, CRC: 0xfafb3fe8}, Want: event.Sum{Length: 5, CRC: 7},
	}
	if diff := cmp.Diff(want, got); diff != "" || path != "/api/conversations/c/mismatches" {
		t.Errorf("%s %s\n%s", path, body, diff)
	}
}
