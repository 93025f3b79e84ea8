package leat_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	leat "github.com/leat-dev/leat/clients/go"
)

var errStopped = errors.New("stopped by the test")

func contextWithStop(t *testing.T) (context.Context, context.CancelCauseFunc) {
	return context.WithCancelCause(context.WithoutCancel(t.Context()))
}

// Messages that were sent while the gateway was down arrive after a restart of the program, once and in order.
func TestOutboxOutlivesTheProgram(t *testing.T) {
	h := newHouse(t, "secret")
	id := h.create()
	dir := filepath.Join(t.TempDir(), "outbox")
	away := &leat.Client{URL: "http://127.0.0.1:1"}
	before, err := leat.OpenOutbox(away, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	stop := runOutbox(t, before)
	var want []string
	for i := range 5 {
		want = append(want, fmt.Sprint("message ", i))
		if _, err := before.Send(id, "asker", leat.Message{Text: want[i]}); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if n := len(before.Pending()); n != 5 {
		t.Fatalf("%d messages wait", n)
	}

	told := make(chan error, 5)
	after, err := leat.OpenOutbox(h.Client, dir, func(_ leat.Outgoing, _ leat.Ack, err error) { told <- err })
	if err != nil {
		t.Fatal(err)
	}
	runOutbox(t, after)
	for range 5 {
		if err := <-told; err != nil {
			t.Error(err)
		}
	}
	tr, err := h.Transcript(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range tr.Messages {
		if m.Role == "user" {
			got = append(got, m.Visible())
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}

// A refusal is reported and removes the message; a refused token does not.
func TestOutboxRefusals(t *testing.T) {
	h := newHouse(t, "secret")
	id := h.create()
	type outcome struct {
		text string
		err  error
	}
	told := make(chan outcome, 2)
	tell := func(m leat.Outgoing, _ leat.Ack, err error) { told <- outcome{m.Message.Text, err} }
	box, err := leat.OpenOutbox(h.Client, "", tell)
	if err != nil {
		t.Fatal(err)
	}
	runOutbox(t, box)
	for _, agent := range []string{"nobody", "asker"} {
		if _, err := box.Send(id, agent, leat.Message{Text: "for " + agent}); err != nil {
			t.Fatal(err)
		}
	}
	var e *leat.Error
	if o := <-told; !errors.As(o.err, &e) || e.Reason != "unknown_agent" || o.text != "for nobody" {
		t.Errorf("%+v", o)
	}
	if o := <-told; o.err != nil || o.text != "for asker" {
		t.Errorf("%+v", o)
	}

	asked := make(chan struct{}, 1)
	stranger := &leat.Client{URL: h.URL, Token: "wrong", HTTP: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		defer func() {
			select {
			case asked <- struct{}{}:
			default:
			}
		}()
		return h.HTTP.Transport.RoundTrip(r)
	})}}
	box, err = leat.OpenOutbox(stranger, "", tell)
	if err != nil {
		t.Fatal(err)
	}
	stop := runOutbox(t, box)
	if _, err := box.Send(id, "asker", leat.Message{Text: "hi"}); err != nil {
		t.Fatal(err)
	}
	<-asked
	stop()
	if len(told) != 0 || len(box.Pending()) != 1 {
		t.Errorf("%d outcomes, %d messages wait", len(told), len(box.Pending()))
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A file that isn't a message prevents opening the outbox, because ignoring it would silently lose a message.
func TestOutboxBrokenFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.outgoing.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := leat.OpenOutbox(&leat.Client{}, dir, nil); err == nil {
		t.Error("a broken file is no error")
	}
}
