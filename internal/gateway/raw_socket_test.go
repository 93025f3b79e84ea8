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
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/dialecttest"
	"github.com/leat-dev/leat/dialect/openclaw"
	recordings "github.com/leat-dev/leat/dialect/recording"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/capture"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// socket is an agent that receives whole messages, as over a WebSocket.
type socket struct {
	messages [][]byte
	said     bool // the agent reports the dialect openclaw itself; otherwise it follows from its kind
}

func (a socket) Run(_ context.Context, _ agent.Input, out *agent.Emitter) error {
	d := openclaw.Dialect().Decoder()
	if a.said {
		out.Messages("openclaw")
	}
	for _, m := range a.messages {
		out.CaptureSent([]byte(`{"type":"req","id":"1","method":"ack"}`))
		out.CaptureReceived(m)
		err := out.Decode(func() ([]event.Event, json.RawMessage, error) {
			ops, err := d.Decode(dialect.Frame{Data: m})
			return ops, nil, err
		})
		if errors.Is(err, agent.ErrTurnOver) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("decode %s: %w", m, err)
		}
	}
	return out.Decode(func() ([]event.Event, json.RawMessage, error) {
		ops, err := d.Close()
		return ops, nil, err
	})
}

// heardOf returns the messages that a recording of a socket received.
func heardOf(t *testing.T, file string) (all [][]byte) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := recordings.NewReader(f, "")
	if err != nil {
		t.Fatal(err)
	}
	for {
		m, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, bytes.Clone(m.Data))
	}
}

// decoded returns the visible text that a recording decodes to.
func decoded(t *testing.T, tape []byte) (visible string, head recordings.Head) {
	t.Helper()
	r, err := recordings.NewReader(bytes.NewReader(tape), "")
	if err != nil {
		t.Fatalf("%v: %s", err, tape)
	}
	d := openclaw.Dialect().Decoder()
	var ops []event.Event
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		more, err := d.Decode(dialect.Frame{Data: f.Data})
		if err != nil {
			t.Fatal(err)
		}
		ops = append(ops, more...)
	}
	return dialecttest.Dump(dialecttest.Fold(t, ops)), r.Head()
}

// Messages of a socket are captured one by one. The exported recording decodes to the same text.
func TestRecordingOfASocket(t *testing.T) {
	for _, name := range []string{"plain", "tool", "uni", "multi", "think"} {
		for _, said := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, said %t", name, said), func(t *testing.T) {
				file := filepath.Join("..", "..", "dialect", "openclaw", "testdata", "2026.9.6", name+".jsonl")
				raw, err := capture.Open(capture.Options{Dir: t.TempDir(), Retention: capture.DefaultRetention, Size: capture.DefaultSize})
				if err != nil {
					t.Fatal(err)
				}
				kind := "openclaw"
				if said {
					kind = "socket"
				}
				a := gateway.Agent{Agent: socket{heardOf(t, file), said}, Kind: kind}
				h := newTestGateway(t, memory.New(), map[string]gateway.Agent{"a": a}, func(c *gateway.Config) {
					c.Raw, c.Dialects = raw, dialect.NewRegistry(openclaw.Dialect())
				})
				t.Cleanup(func() {
					h.close()
					if err := raw.Close(); err != nil {
						t.Error(err)
					}
				})
				conv := h.create(alice)
				ack := h.send(conv, "hello")
				h.ended(conv, ack.Turn)
				var tape bytes.Buffer
				if err := h.WriteRecording(t.Context(), alice, ack.Turn, &tape); err != nil {
					t.Fatal(err)
				}
				original, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				want, _ := decoded(t, original)
				got, head := decoded(t, tape.Bytes())
				if got != want || head.Dialect != "openclaw" {
					t.Errorf("the export, of dialect %q, comes to\n%s\nwant\n%s", head.Dialect, got, want)
				}
				x, err := h.Explain(t.Context(), admin, ack.Turn)
				if err != nil {
					t.Fatal(err)
				}
				if !x.IsSame || x.StoredText == "" || x.Dialect != "openclaw" {
					t.Errorf("same is %t, dialect %q, stored %q", x.IsSame, x.Dialect, x.StoredText)
				}
			})
		}
	}
}
