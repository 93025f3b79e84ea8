package durable

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/quota"
)

var admin = gateway.Principal{Admin: true}

// pieces is an agent that writes a piece of its text for each value that it receives.
type pieces chan string

func (p pieces) Run(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
	for {
		select {
		case text, ok := <-p:
			if !ok {
				return nil
			}
			if err := out.Text(text); err != nil {
				return err
			}
			if err := out.Flush(); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// follow reads a stream by long polls until a condition holds, and returns what it got by the offset before it.
func (h *harness) follow(path, offset string, enough func(res *http.Response, body string) bool) (offsets, bodies []string) {
	h.T.Helper()
	for {
		res, body := h.do(request{path: path + "?live=long-poll&offset=" + offset})
		if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusNoContent {
			h.T.Fatalf("%s after %s: %d %s", path, offset, res.StatusCode, body)
		}
		if res.StatusCode == http.StatusOK {
			offsets, bodies = append(offsets, offset), append(bodies, body)
		}
		if next := res.Header.Get(headerNextOffset); next < offset && offset != offsetStart {
			h.T.Fatalf("%s follows %s", next, offset)
		} else {
			offset = next
		}
		if enough(res, body) {
			return append(offsets, offset), bodies
		}
	}
}

// A reader that resumes after any offset, while the turn runs, after its end and after compaction, ends with the same transcript.
func TestResume(t *testing.T) {
	p := make(pieces)
	h := newHarness(t, p, quota.Limits{})
	if _, _, err := h.Gateway.Create(t.Context(), admin, gateway.CreateOptions{ID: "c"}); err != nil {
		t.Fatal(err)
	}
	turn := h.send(admin, "c", "go")
	want := ""
	go func() {
		defer close(p)
		for i := range 30 {
			p <- fmt.Sprintf("%d:%s ", i, strings.Repeat("ö🌍", i%4))
		}
	}()
	for i := range 30 {
		want += fmt.Sprintf("%d:%s ", i, strings.Repeat("ö🌍", i%4))
	}
	offsets, bodies := h.follow("conversations/c", offsetStart, func(_ *http.Response, body string) bool { return strings.Contains(body, `"turn.end"`) })
	h.ended(admin, "c", turn)
	for i := range offsets {
		r := &reader{t: t}
		for _, body := range bodies[:min(i, len(bodies))] {
			r.add(body)
		}
		for offset := offsets[i]; ; {
			res, body := h.do(request{path: "conversations/c?offset=" + offset})
			r.add(body)
			if offset = res.Header.Get(headerNextOffset); res.Header.Get(headerUpToDate) == isTrue {
				break
			}
		}
		if got := r.texts(); got != "go|"+want+"|" {
			t.Errorf("resumed after %s: %q", offsets[i], got)
		}
		if r.Turn(turn).Unfinished() {
			t.Error("the turn has no end")
		}
	}
	if last := offsets[len(offsets)-1]; last != h.tail("conversations/c") {
		t.Errorf("the reader ends at %s, the stream at %s", last, h.tail("conversations/c"))
	}
}

// tail returns the end of a stream.
func (h *harness) tail(path string) string {
	h.T.Helper()
	res, _ := h.do(request{method: http.MethodHead, path: path})
	if res.StatusCode != http.StatusOK || res.Header.Get("Cache-Control") != "no-store" {
		h.T.Fatalf("HEAD: %d %v", res.StatusCode, res.Header)
	}
	return res.Header.Get(headerNextOffset)
}

// A reader whose offset can't be resumed gets a snapshot in the place of everything.
func TestSnapshot(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	h.answered(admin, "c", "one")
	_, first := h.do(request{path: "conversations/c"})
	old := h.tail("conversations/c")
	h.ended(admin, "c", h.send(admin, "c", "two"))
	if _, err := h.Gateway.Do(t.Context(), admin, "c", gateway.Command{Type: gateway.CommandTruncate}); err != nil {
		t.Fatal(err)
	}
	h.ended(admin, "c", h.send(admin, "c", "three"))
	for _, offset := range []string{offsetStart, old, "0000000000000001_ffffffffffffffff", "0000000000099999" + old[16:]} {
		res, body := h.do(request{path: "conversations/c?offset=" + offset})
		r := &reader{t: t}
		r.add(first)
		r.add(body)
		if got := r.texts(); got != "three|re: three|" || !strings.Contains(body, `"snapshot"`) || res.Header.Get(headerUpToDate) != isTrue {
			t.Errorf("after %s: %q in %s", offset, got, body)
		}
	}
}

// event is one of a stream of server-sent events.
type sent struct{ name, data string }

// events reads a stream of server-sent events to its end, or until a condition holds.
func events(t *testing.T, res *http.Response, enough func(sent) bool) (list []sent) {
	t.Helper()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	e := sent{}
	for lines.Scan() {
		line := lines.Text()
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			e.name = name
		}
		if data, ok := strings.CutPrefix(line, "data:"); ok {
			if e.data != "" {
				e.data += "\n"
			}
			e.data += data
		}
		if line == "" {
			list = append(list, e)
			if enough(e) {
				return list
			}
			e = sent{}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// The stream of a turn ends with the turn. Its texts are complete by appending alone, also after each offset.
func TestTurn(t *testing.T) {
	p := make(pieces)
	h := newHarness(t, p, quota.Limits{})
	if _, _, err := h.Gateway.Create(t.Context(), admin, gateway.CreateOptions{ID: "c"}); err != nil {
		t.Fatal(err)
	}
	path := "turns/" + h.send(admin, "c", "go")
	res := h.open(request{path: path + "?offset=-1&live=sse"})
	if res.Header.Get("Content-Type") != typeEvents {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	want := ""
	go func() {
		defer close(p)
		for i := range 20 {
			p <- fmt.Sprintf("%d wörd\n", i)
		}
	}()
	for i := range 20 {
		want += fmt.Sprintf("%d wörd\n", i)
	}
	list := events(t, res, func(sent) bool { return false })
	text, offsets := map[string]string{offsetStart: ""}, []string{offsetStart}
	whole, final := "", control{}
	for _, e := range list {
		if e.name == "data" {
			whole += appended(t, e.data)
			continue
		}
		final = control{}
		if err := json.Unmarshal([]byte(e.data), &final); err != nil {
			t.Fatal(err)
		}
		text[final.Next] = whole
		offsets = append(offsets, final.Next)
	}
	if whole != want || !final.Closed || final.Cursor != "" {
		t.Errorf("%q, %+v", whole, final)
	}
	for _, offset := range offsets {
		got := text[offset]
		_, bodies := h.follow(path, offset, func(res *http.Response, _ string) bool { return res.Header.Get(headerClosed) == isTrue })
		for _, body := range bodies {
			got += appended(t, body)
		}
		if got != want {
			t.Errorf("resumed after %s: %q", offset, got)
		}
	}
	res, _ = h.do(request{method: http.MethodHead, path: path})
	if res.Header.Get(headerClosed) != isTrue || res.Header.Get(headerNextOffset) != final.Next {
		t.Errorf("HEAD: %v", res.Header)
	}
	res, _ = h.do(request{path: path + "?offset=" + final.Next[:16] + "_ffffffffffffffff"})
	if res.StatusCode != http.StatusGone {
		t.Errorf("another log's offset: %d", res.StatusCode)
	}
}

// appended returns the text that records append.
func appended(t *testing.T, records string) (text string) {
	t.Helper()
	var list []event.Event
	if err := json.Unmarshal([]byte(records), &list); err != nil {
		t.Fatalf("%s: %v", records, err)
	}
	for i := range list {
		if list[i].Type == event.PartReplace {
			t.Errorf("the text is replaced: %+v", list[i])
		}
		if list[i].Type == event.PartAppend {
			text += list[i].Text
		}
	}
	return text
}

// A turn that waits for a person has a stream that stays open.
func TestWaitingTurn(t *testing.T) {
	h := newHarness(t, agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
		a, err := out.Ask(ctx, event.Request{ID: "ask", Kind: event.RequestApproval, Tool: "shell", Prompt: "May I?"})
		if err != nil {
			return err
		}
		return out.Text(string(a.Decision))
	}), quota.Limits{})
	if _, _, err := h.Gateway.Create(t.Context(), admin, gateway.CreateOptions{ID: "c"}); err != nil {
		t.Fatal(err)
	}
	turn := h.send(admin, "c", "go")
	offsets, _ := h.follow("turns/"+turn, offsetStart, func(res *http.Response, body string) bool { return strings.Contains(body, `"turn.wait"`) })
	res, body := h.do(request{path: "turns/" + turn + "?live=long-poll&offset=" + offsets[len(offsets)-1]})
	if res.StatusCode != http.StatusNoContent || res.Header.Get(headerClosed) != "" || res.Header.Get(headerUpToDate) != isTrue || res.Header.Get(headerCursor) == "" {
		t.Errorf("a long poll: %d %v %s", res.StatusCode, res.Header, body)
	}
	if _, err := h.Gateway.Do(t.Context(), admin, "c", gateway.Command{Type: gateway.CommandAnswer, Turn: turn, Request: "ask", Decision: event.Approve}); err != nil {
		t.Fatal(err)
	}
	_, bodies := h.follow("turns/"+turn, offsets[len(offsets)-1], func(res *http.Response, _ string) bool { return res.Header.Get(headerClosed) == isTrue })
	if text := appended(t, bodies[len(bodies)-1]); !strings.Contains(strings.Join(bodies, ""), string(event.Approve)) {
		t.Errorf("%q in %s", text, bodies)
	}
}

// Clients that are connected when the gateway stops resume where they were.
func TestShutdown(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	h.answered(admin, "c", "one")
	tail := h.tail("conversations/c")
	res := h.open(request{path: "conversations/c?offset=now&live=sse"})
	stop := func(e sent) bool {
		h.Server.Close()
		return false
	}
	list := events(t, res, stop)
	var last control
	if err := json.Unmarshal([]byte(list[len(list)-1].data), &last); err != nil || last.Next != tail || !last.UpToDate {
		t.Errorf("%+v, %v", last, err)
	}
}

func TestQuotaOfViewers(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{Viewers: 1})
	p := gateway.Principal{Subject: "alice", Scopes: []string{gateway.ScopeAgent}}
	h.answered(p, "c", "one")
	first := h.open(request{path: "conversations/c?offset=-1&live=sse", subject: "alice"})
	events(t, first, func(e sent) bool { return e.name == "control" })
	for _, live := range []string{"sse", "long-poll"} {
		res, body := h.do(request{path: "conversations/c?offset=now&live=" + live, subject: "alice"})
		if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", live, res.StatusCode, body)
		}
	}
	if res, _ := h.do(request{path: "conversations/c", subject: "alice"}); res.StatusCode != http.StatusOK {
		t.Errorf("a single read: %d", res.StatusCode)
	}
	if res, _ := h.do(request{path: "conversations/c", subject: "bob"}); res.StatusCode != http.StatusNotFound {
		t.Errorf("another user: %d", res.StatusCode)
	}
}
