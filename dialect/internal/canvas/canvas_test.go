package canvas_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/canvas"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonscan"
)

// reader opens a part with each frame: {"key":…,"kind":…,"state":…}.
type reader struct{}

var states = jsonscan.NewWriter[reader]()

func (reader) Read(c *canvas.Canvas, f dialect.Frame) error {
	var in struct {
		Key   string
		Kind  event.PartKind
		State event.PartState
	}
	if err := decoding.Unmarshal(f.Data, &in); err != nil {
		return err
	}
	_, err := c.Start(in.Key, event.Body{Kind: in.Kind, State: in.State})
	if in.Kind == event.KindData {
		c.EndPart(c.Find(in.Key))
	}
	return err
}

func frame(i int, kind event.PartKind, state event.PartState) dialect.Frame {
	return dialect.Frame{Data: fmt.Appendf(nil, `{"key":"k%d","kind":%q,"state":%q}`, i, kind, state)}
}

// refused decodes a frame above a limit twice: both calls must return the same error, and Close must report the stream as cut short.
func refused(t *testing.T, d dialect.Decoder, f dialect.Frame, n int, why string) {
	t.Helper()
	for range 2 {
		ops, err := d.Decode(f)
		var e *dialect.Error
		if !errors.As(err, &e) || e.Dialect != "test" || e.Frame != n || e.Reason != why || len(ops) > 0 {
			t.Fatalf("%d operations, %v", len(ops), err)
		}
	}
	if _, err := d.Close(); !errors.Is(err, dialect.ErrCutShort) {
		t.Errorf("Close: %v", err)
	}
}

func decode(t *testing.T, d dialect.Decoder, f dialect.Frame) []event.Event {
	t.Helper()
	ops, err := d.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return ops
}

func open(t *testing.T, d dialect.Decoder) []canvas.Part {
	t.Helper()
	b, err := d.State()
	if err != nil {
		t.Fatal(err)
	}
	var st struct{ Canvas struct{ Open []canvas.Part } }
	if err := json.Unmarshal(b, &st); err != nil {
		t.Fatal(err)
	}
	return st.Canvas.Open
}

// The number of parts in a turn is limited, even if each of them has ended.
func TestParts(t *testing.T) {
	const most = 10_000
	d := canvas.NewDecoder("test", &reader{}, states)
	for i := range most {
		decode(t, d, frame(i, event.KindData, ""))
	}
	refused(t, d, frame(most, event.KindData, ""), most+1, "more than 10000 parts")
}

// The number of open parts is limited: the oldest text is ended to make room, never a running tool.
func TestOpen(t *testing.T) {
	const most = 512
	d := canvas.NewDecoder("test", &reader{}, states)
	decode(t, d, frame(0, event.KindTool, event.PartRunning))
	for i := 1; i < most; i++ {
		decode(t, d, frame(i, event.KindText, ""))
	}
	n := most
	for i := 1; i < most; i++ {
		ops := decode(t, d, frame(n, event.KindTool, event.PartRunning))
		if n++; len(ops) != 2 || ops[0].Type != event.PartEnd || ops[0].Part != fmt.Sprint(i+1) || ops[1].Type != event.PartStart {
			t.Fatalf("tool %d: %v", i, ops)
		}
		if got := open(t, d); len(got) != most {
			t.Fatalf("%d parts are open", len(got))
		}
	}
	if got := open(t, d)[0]; got.Key != "k0" {
		t.Errorf("the running tool was ended: %v", got)
	}
	refused(t, d, frame(n, event.KindTool, event.PartRunning), n+1, "more than 512 tools run at once")
}

// The length of keys and call ids is limited, because they are stored in the state.
func TestKey(t *testing.T) {
	d := canvas.NewDecoder("test", &reader{}, states)
	long := dialect.Frame{Data: []byte(`{"kind":"text","key":"` + strings.Repeat("k", event.MaxID+1) + `"}`)}
	refused(t, d, long, 1, "id of a part")
}
