package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect/elizaactions"
	recordings "github.com/leat-dev/leat/dialect/recording"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/push"
	"github.com/leat-dev/leat/internal/service/capture"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// hears is an agent that sends its message and receives a body in pieces of one byte.
type hears struct{ body string }

func (a hears) Run(_ context.Context, in agent.Input, out *agent.Emitter) error {
	out.CaptureSent([]byte(in.Message.Text))
	_, err := agent.NewStream(out, elizaactions.Dialect()).ReadFrom(iotest.OneByteReader(strings.NewReader(a.body)))
	return err
}

const heard = `{"type":"callback","text":"Looking"}
{"type":"chunk","text":"Hello "}
{"type":"chunk","text":"sk-0123456789abcdefgh"}
{"type":"done"}
`

// recorded is a test gateway that captures the bytes of turns.
func recorded(t *testing.T, a agent.Agent) (*testGateway, string) {
	t.Helper()
	dir := t.TempDir()
	raw, err := capture.Open(capture.Options{Dir: dir, Retention: capture.DefaultRetention, Size: capture.DefaultSize})
	if err != nil {
		t.Fatal(err)
	}
	h := newTestGateway(t, memory.New(), map[string]gateway.Agent{"a": {Agent: a, Kind: "hears", Secrets: []string{"configured"}}}, func(c *gateway.Config) { c.Raw = raw })
	t.Cleanup(func() {
		h.close()
		if err := raw.Close(); err != nil {
			t.Error(err)
		}
	})
	return h, dir
}

func onDisk(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all += string(b)
	}
	return all
}

// frames returns the frames of a recording.
func frames(t *testing.T, tape []byte) (all []string, head recordings.Head) {
	t.Helper()
	r, err := recordings.NewReader(bytes.NewReader(tape), "")
	if err != nil {
		t.Fatalf("%v: %s", err, tape)
	}
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, r.Head()
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(f.Data))
	}
}

func TestRecording(t *testing.T) {
	h, dir := recorded(t, hears{heard})
	conv := h.create(alice)
	ack := h.send(conv, "with a configured word")
	h.ended(conv, ack.Turn)
	var tape bytes.Buffer
	if err := h.WriteRecording(t.Context(), alice, ack.Turn, &tape); err != nil {
		t.Fatal(err)
	}
	got, head := frames(t, tape.Bytes())
	if want := strings.Split(strings.TrimSpace(strings.Replace(heard, "0123456789abcdefgh", "***", 1)), "\n"); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("frames %q", got)
	}
	if want := (recordings.Head{Turn: ack.Turn, Conversation: conv, Agent: "a", Kind: "hears", Dialect: "eliza-actions"}); head != want {
		t.Errorf("head %+v", head)
	}
	if !strings.Contains(tape.String(), `"with a *** word"`) || strings.Contains(tape.String(), "configured") {
		t.Errorf("the recording: %s", tape.String())
	}

	x, err := h.Explain(t.Context(), admin, ack.Turn)
	if err != nil {
		t.Fatal(err)
	}
	if x.StoredText != "Looking\n\nHello sk-***" || !x.IsSame || x.Dialect != "eliza-actions" || x.Outcome != event.Completed || x.Agent != "a" || x.Kind != "hears" {
		t.Errorf("%+v", x)
	}
	shown := ""
	for i, s := range x.Steps {
		switch {
		case s.Visible != nil:
			shown = *s.Visible
		default:
			shown += s.Appended
		}
		if (i == 0) != (s.Outgoing != "") || s.Error != "" || i > 0 && len(s.Events) == 0 {
			t.Errorf("step %d: %+v", i, s)
		}
	}
	if len(x.Steps) != 5 || shown != x.StoredText {
		t.Errorf("%d steps, shown %q", len(x.Steps), shown)
	}
	if _, err := json.Marshal(x); err != nil {
		t.Error(err)
	}

	// A guest, and an owner without the right to inspect, can't read it.
	h.do(conv, gateway.Command{Type: gateway.CommandShare, Subject: "bob", Access: gateway.AccessWrite})
	writer := gateway.Principal{Tenant: "t1", Subject: "alice"}
	other := gateway.Principal{Tenant: "t2", Subject: "alice", Scopes: []string{gateway.ScopeAgent}}
	for who, want := range map[*gateway.Principal]error{&bob: gateway.ErrForbidden, &writer: gateway.ErrForbidden, &other: gateway.ErrNotFound} {
		if err := h.WriteRecording(t.Context(), *who, ack.Turn, &tape); !errors.Is(err, want) {
			t.Errorf("%+v: recording: %v", *who, err)
		}
		if _, err := h.Explain(t.Context(), *who, ack.Turn); !errors.Is(err, want) {
			t.Errorf("%+v: explain: %v", *who, err)
		}
	}

	h.do(conv, gateway.Command{Type: gateway.CommandDelete})
	if all := onDisk(t, dir); strings.Contains(all, "Hello") || strings.Contains(all, "word") {
		t.Errorf("a deleted conversation is in the files: %q", all)
	}
	if err := h.WriteRecording(t.Context(), admin, ack.Turn, &tape); !errors.Is(err, gateway.ErrNotFound) {
		t.Errorf("of a deleted conversation: %v", err)
	}
}

func TestRecordingIsGoneWithWhatItHolds(t *testing.T) {
	h, dir := recorded(t, hears{heard})
	conv := h.create(alice)
	for name, remove := range map[string]func() error{
		"truncate": func() error { h.truncate(conv); return nil },
		"redact": func() error {
			_, err := h.Guests().Redact(t.Context(), admin, conv, "bob")
			return err
		},
	} {
		ack := h.send(conv, "question")
		h.ended(conv, ack.Turn)
		if !strings.Contains(onDiskAfter(t, h, ack.Turn, dir), "question") {
			t.Fatal("nothing was kept")
		}
		if err := remove(); err != nil {
			t.Fatal(name, err)
		}
		if strings.Contains(onDisk(t, dir), "question") {
			t.Errorf("%s: it is in the files", name)
		}
		var tape bytes.Buffer
		if err := h.WriteRecording(t.Context(), admin, ack.Turn, &tape); err == nil || tape.Len() > 0 {
			t.Errorf("%s: %v, %s", name, err, tape.String())
		}
	}
}

// onDiskAfter returns the content of the files after all bytes of a turn are written.
func onDiskAfter(t *testing.T, h *testGateway, turn, dir string) string {
	t.Helper()
	if err := h.WriteRecording(t.Context(), admin, turn, io.Discard); err != nil {
		t.Fatal(err)
	}
	return onDisk(t, dir)
}

// Bytes that a producer sends again after a lost connection are captured once.
func TestRecordingOfAPush(t *testing.T) {
	h, _ := recorded(t, hears{})
	conv := h.create(alice)
	pr, ack, err := h.Push(t.Context(), alice, conv, push.Options{Dialect: "eliza-actions"})
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(heard)
	if err := pr.Write(t.Context(), body[:60]); err != nil {
		t.Fatal(err)
	}
	_ = pr.Close(false)
	pr, err = h.Attach(t.Context(), alice, ack.Turn)
	if err != nil {
		t.Fatal(err)
	}
	for rest := body[pr.Offset():]; len(rest) > 0; rest = rest[1:] {
		if err := pr.Write(t.Context(), rest[:1]); err != nil && !errors.Is(err, gateway.ErrTurnOver) {
			t.Fatal(err)
		}
	}
	_ = pr.Close(true)
	h.ended(conv, ack.Turn)
	var tape bytes.Buffer
	if err := h.WriteRecording(t.Context(), admin, ack.Turn, &tape); err != nil {
		t.Fatal(err)
	}
	if got, _ := frames(t, tape.Bytes()); len(got) != 4 {
		t.Errorf("frames %q", got)
	}
}

// Frames of an unknown dialect are matched to the events of the log by time.
func TestExplainByTheLog(t *testing.T) {
	h, _ := recorded(t, agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
		for i := range 3 {
			out.CaptureReceived(fmt.Appendf(nil, `{"n":%d}`, i))
			if err := out.Text(fmt.Sprint(i)); err != nil {
				return err
			}
		}
		return nil
	}))
	conv := h.create(alice)
	ack := h.send(conv, "x")
	h.ended(conv, ack.Turn)
	for { // until the log is compacted
		x, err := h.Explain(t.Context(), admin, ack.Turn)
		if err != nil {
			t.Fatal(err)
		}
		shown, frames := "", 0
		for _, s := range x.Steps {
			shown += s.Appended
			if s.Frame != "" {
				frames++
			}
		}
		if shown == "" {
			continue
		}
		if shown != "012" || frames != 3 || x.Dialect != "" || x.StoredText != "012" {
			t.Errorf("%+v", x)
		}
		return
	}
}

func TestNotKept(t *testing.T) {
	h := newTestGateway(t, nil, one(hears{heard}), nil)
	defer h.close()
	conv := h.create(alice)
	ack := h.send(conv, "x")
	h.ended(conv, ack.Turn)
	if err := h.WriteRecording(t.Context(), admin, ack.Turn, io.Discard); !errors.Is(err, gateway.ErrNotKept) {
		t.Errorf("%v", err)
	}
	if err := h.WriteRecording(t.Context(), admin, "none", io.Discard); !errors.Is(err, gateway.ErrNotFound) {
		t.Errorf("%v", err)
	}
}
