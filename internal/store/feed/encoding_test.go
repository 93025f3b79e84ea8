package feed

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/leat-dev/leat/event"
)

func TestCursor(t *testing.T) {
	for _, c := range []struct {
		cursor Cursor
		epoch  string
		seq    int64
		ok     bool
	}{
		{NewCursor("e1", 0), "e1", 0, true},
		{NewCursor("0198c0de-0000-7000-8000-000000000000", 123), "0198c0de-0000-7000-8000-000000000000", 123, true},
		{NewCursor("a.b", 1<<59), "a.b", 1 << 59, true},
		{newCursor("e1", "t1", 7), "e1", 7, true},
		{"", "", 0, false},
		{"~t.1", "", 0, false},
		{"e~.1", "", 0, false},
		{".1", "", 0, false},
		{"e", "", 0, false},
		{"e.", "", 0, false},
		{"e.-1", "", 0, false},
		{"e.+1", "", 0, false},
		{"e.01", "", 0, false},
		{"e.1 ", "", 0, false},
		{"e.9999999999999999999", "", 0, false},
	} {
		if epoch, seq, ok := c.cursor.Parse(); epoch != c.epoch || seq != c.seq || ok != c.ok {
			t.Errorf("%q: %q %d %v", c.cursor, epoch, seq, ok)
		}
	}
}

func FuzzCursor(f *testing.F) {
	f.Add("e1.0")
	f.Add("a.b.17")
	f.Add("e1~t1.17")
	f.Fuzz(func(t *testing.T, s string) {
		if epoch, term, seq, ok := Cursor(s).parse(); ok && newCursor(epoch, term, seq) != Cursor(s) {
			t.Errorf("%q is %q %q %d", s, epoch, term, seq)
		}
	})
}

func TestEncodings(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	log.append(message("u", "hi\n"))
	_, f := open(t, log, Config{})
	defer f.Release()
	snapshot := poll(t, f, "", 0)
	const wantSnapshot = `{"type":"snapshot","conversation":"c","cursor":"e.1","epoch":"e","reset":true,"first":"u","transcript":{"seq":1,"messages":[{"id":"u","role":"user","ended":true,"parts":[{"id":"p1","kind":"text","ended":true,"text":"hi\n"}]}],"turns":[]}}`
	if got := encoded(t, snapshot, JSON); got != wantSnapshot {
		t.Errorf("got  %s\nwant %s", got, wantSnapshot)
	}
	publish(t, log, f, append(answer(), says(0, "a"), says(1, "b"))...)
	b := poll(t, f, snapshot.Cursor, 0)
	const want = `{"type":"batch","conversation":"c","cursor":"e.6","seq":6,"events":[{"seq":2,"turn":"t","type":"turn.start"},{"seq":3,"turn":"t","type":"message.start","message":"m","role":"assistant"},` +
		`{"seq":4,"turn":"t","type":"part.start","message":"m","part":"p","kind":"text"},{"seq":6,"first":5,"turn":"t","type":"part.append","message":"m","part":"p","offset":0,"text":"ab"}]}`
	n := len(want)
	sse := "id: e.6\ndata: " + want + "\n\n"
	for as, want := range map[Encoding]string{
		JSON: want, NDJSON: want + "\n", SSE: sse, SSEChunk: fmt.Sprintf("%x\r\n%s\r\n", len(sse), sse),
		Text: "\x81\x7e" + string([]byte{byte(n >> 8), byte(n)}) + want,
	} {
		if got := encoded(t, b, as); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

// The length of a WebSocket message has three forms.
func TestText(t *testing.T) {
	for n, head := range map[int]string{
		0: "\x81\x00", 125: "\x81\x7d", 126: "\x81\x7e\x00\x7e", 65535: "\x81\x7e\xff\xff", 65536: "\x81\x7f\x00\x00\x00\x00\x00\x01\x00\x00",
	} {
		text := strings.Repeat("x", n)
		if got := string(appendText(nil, []byte(text))); got != head+text {
			t.Errorf("%d bytes: head %q", n, got[:len(got)-n])
		}
	}
}

func TestEncodeFails(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	_, f := open(t, log, Config{})
	defer f.Release()
	c := f.Cursor()
	publish(t, log, f, event.Event{Type: event.Record, Body: &event.Body{RecordKind: "k", Data: json.RawMessage("{")}})
	if j, err := poll(t, f, c, 0).Encode(SSE); err == nil {
		t.Errorf("no error: %s", j)
	}
}

func TestParseFrameRefuses(t *testing.T) {
	for _, s := range []string{"", "{", `{"type":"ack"}`, `{"type":"snapshot"}`, `{"type":"batch","events":{}}`} {
		if f, err := ParseFrame([]byte(s)); err == nil {
			t.Errorf("%q is %+v", s, f)
		}
	}
}
