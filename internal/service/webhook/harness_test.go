package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/signature"
	"github.com/leat-dev/leat/internal/base/signature/signaturetest"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/transcript"
)

const secret = "0123456789abcdef"

// got is a request that a receiver got.
type got struct {
	Body
	at time.Time
}

// receiver stands in for a hook's server.
type receiver struct {
	t *testing.T
	// answer decides the result of a request: a status or an error.
	answer func(*Body) (status int, h http.Header, err error)

	mu  sync.Mutex
	got []got
	out int // requests that are being answered
	top int // the most there were
}

var errRefused = errors.New("connection refused")

func (r *receiver) Do(req *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	if err := signaturetest.Verify(secret, req.Header.Get(signature.Header), b, time.Now(), 0); err != nil {
		r.t.Error(err)
	}
	var body Body
	if err := json.Unmarshal(b, &body); err != nil {
		r.t.Errorf("%v: %s", err, b)
	}
	if id := req.Header.Get(IDHeader); id == "" || id != body.ID {
		r.t.Errorf("header %q, id %q", id, body.ID)
	}
	r.mu.Lock()
	r.got = append(r.got, got{body, time.Now()})
	r.out++
	r.top = max(r.top, r.out)
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.out--
		r.mu.Unlock()
	}()
	status, h := http.StatusOK, http.Header{}
	if r.answer != nil {
		status, h, err = r.answer(&body)
	}
	if !errors.Is(err, errRefused) {
		httptrace.ContextClientTrace(req.Context()).GotConn(httptrace.GotConnInfo{})
	}
	if err == nil {
		err = req.Context().Err()
	}
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader("ignored"))}, nil
}

// took lists the received deliveries as conversation/seq, in order, including repeats.
func (r *receiver) took() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]string, len(r.got))
	for i, g := range r.got {
		all[i] = fmt.Sprint(g.Conversation, "/", g.Seq)
	}
	return all
}

func (r *receiver) want(want ...string) {
	r.t.Helper()
	if got := r.took(); !slices.Equal(got, want) {
		r.t.Errorf("delivered %q, want %q", got, want)
	}
}

// disk is a journal whose commits can fail.
type disk struct {
	journal.Journal
	mu  sync.Mutex
	err error
}

func (d *disk) fail(err error) {
	d.mu.Lock()
	d.err = err
	d.mu.Unlock()
}

func (d *disk) Append(ctx context.Context, b journal.Batch) error {
	d.mu.Lock()
	err := d.err
	d.mu.Unlock()
	if err != nil {
		return err
	}
	return d.Journal.Append(ctx, b)
}

// harness is a set of hooks on a journal. The test writes conversations as a gateway does.
type harness struct {
	*Hooks
	t     *testing.T
	look  ReadTranscript
	disk  *disk
	heads map[string]int64
}

func newHarness(t *testing.T, d *disk, size int, hooks map[string]*receiver) *harness {
	t.Helper()
	if d == nil {
		d = &disk{Journal: memory.New()}
	}
	cfg := Config{Journal: d}
	look := func(ctx context.Context, conversation string, fn func(*transcript.Transcript) bool) error {
		r, err := d.Read(ctx, conversation, 0, 0)
		if errors.Is(err, journal.ErrDeleted) {
			return nil
		}
		if err != nil {
			return err
		}
		var tr transcript.Transcript
		for i := range r.Events {
			if err := tr.Apply(&r.Events[i]); err != nil {
				return err
			}
		}
		fn(&tr)
		return nil
	}
	for name := range hooks {
		cfg.Hooks = append(cfg.Hooks, Hook{Name: name, URL: "https://example.com/s3cret", Secret: secret, Content: name == "content"})
	}
	h := &harness{Hooks: New(cfg), t: t, look: look, disk: d, heads: map[string]int64{}}
	for _, q := range h.queues {
		q.client, q.window.max = hooks[q.hook.Name], size
	}
	return h
}

func (h *harness) start() *harness {
	h.t.Helper()
	if err := h.Start(h.t.Context(), h.look); err != nil {
		h.t.Fatal(err)
	}
	return h
}

// add appends events to a conversation, with their deliveries in the same commit, as its writer does.
func (h *harness) add(conversation string, events ...event.Event) {
	h.t.Helper()
	s := journal.Summary{ID: conversation, Tenant: "t1", Owner: "alice"}
	head := h.heads[conversation]
	for i := range events {
		events[i].Seq, events[i].At = head+int64(i)+1, time.Now().UnixMilli()
	}
	b := journal.Batch{Conversation: conversation, Expected: head, Create: head == 0, Summary: &s, Events: events, Keys: h.Entries(&s, events)}
	err := h.disk.Append(context.Background(), b)
	h.Finish(b.Keys, err)
	if err != nil {
		h.t.Fatal(err)
	}
	h.heads[conversation] += int64(len(events))
}

// say adds a message.
func (h *harness) say(conversation, text string) {
	h.t.Helper()
	h.add(conversation, event.Event{Type: event.MessageAdd, Message: fmt.Sprint(conversation, "-m", h.heads[conversation]+1), Body: &event.Body{
		Role: event.User, Source: "native", Parts: []event.Part{{Kind: event.KindText, Text: text}},
	}})
}

// stored counts the deliveries in the journal.
func (h *harness) stored() int {
	h.t.Helper()
	keys, err := h.disk.Keys(context.Background(), Prefix)
	if err != nil {
		h.t.Fatal(err)
	}
	return len(keys)
}

// count returns the sum of a metric.
func (h *harness) count(name string) (n float64) {
	h.t.Helper()
	r := prometheus.NewRegistry()
	if err := r.Register(h.cfg.Metrics); err != nil {
		h.t.Fatal(err)
	}
	all, err := r.Gather()
	if err != nil {
		h.t.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				n += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return n
}

func status(code int) func(*Body) (int, http.Header, error) {
	return func(*Body) (int, http.Header, error) { return code, nil, nil }
}
