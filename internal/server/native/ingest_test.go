package native_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// body is a stream of eliza-actions with everything that an interruption can split: multi-byte characters, a callback and an
// end.
var body = strings.Join([]string{
	`{"type":"chunk","text":"Grüße, "}`,
	`{"type":"chunk","text":"wörld 😀"}`,
	`{"type":"callback","text":"🔍 Looking…","source":"a"}`,
	`{"type":"callback","text":"Found","source":"a"}`,
	`{"type":"done"}`,
}, "\n") + "\n"

const bodyText = "assistant: Grüße, wörld 😀\n\nFound"

// producer pushes a stream over a connection that the test can interrupt.
type producer struct {
	t      *testing.T
	conn   net.Conn
	res    *http.Response
	lines  *bufio.Scanner
	method string
}

// produce opens a chunked request and returns when the response headers have arrived.
func (h *harness) produce(method, path string, header ...string) *producer {
	h.t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(h.t.Context(), "tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = conn.Close() })
	head := method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
	for k, v := range h.header {
		head += k + ": " + v[0] + "\r\n"
	}
	for i := 0; i < len(header); i += 2 {
		head += header[i] + ": " + header[i+1] + "\r\n"
	}
	if _, err := io.WriteString(conn, head+"\r\n"); err != nil {
		h.t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return &producer{t: h.t, conn: conn, res: res, lines: bufio.NewScanner(res.Body), method: method}
}

func (p *producer) write(s string) *producer {
	p.t.Helper()
	if s == "" {
		return p // an empty chunk would end the body
	}
	if _, err := fmt.Fprintf(p.conn, "%x\r\n%s\r\n", len(s), s); err != nil {
		p.t.Fatal(err)
	}
	return p
}

// end ends the body with its last chunk.
func (p *producer) end() *producer {
	p.t.Helper()
	if _, err := io.WriteString(p.conn, "0\r\n\r\n"); err != nil {
		p.t.Fatal(err)
	}
	return p
}

type ingestLine struct {
	Offset, Seq            int64
	Ended                  *bool
	State, Outcome, Reason string
	Error                  string
	Status                 int
}

// line reads the next line of the response, or nil at its end.
func (p *producer) line() *ingestLine {
	p.t.Helper()
	if !p.lines.Scan() {
		return nil
	}
	var l ingestLine
	if err := json.Unmarshal(p.lines.Bytes(), &l); err != nil {
		p.t.Fatalf("%v: %s", err, p.lines.Bytes())
	}
	if l.Ended != nil {
		valid(p.t, "ingestEnd", p.lines.Bytes())
	} else {
		valid(p.t, "acknowledgement", p.lines.Bytes())
	}
	return &l
}

// acked waits until everything up to an offset is committed.
func (p *producer) acked(offset int64) {
	p.t.Helper()
	for {
		l := p.line()
		if l == nil || l.Ended != nil {
			p.t.Fatalf("no acknowledgement of %d", offset)
		}
		if l.Offset >= offset {
			return
		}
	}
}

// last reads up to the last line.
func (p *producer) last() ingestLine {
	p.t.Helper()
	for {
		l := p.line()
		if l == nil {
			p.t.Fatal("the answer has no last line")
		}
		if l.Ended != nil {
			if more := p.line(); more != nil {
				p.t.Errorf("a line after the last: %+v", more)
			}
			return *l
		}
	}
}

func (p *producer) wantStatus(status int) *producer {
	p.t.Helper()
	if p.res.StatusCode != status {
		b, _ := io.ReadAll(p.res.Body)
		p.t.Fatalf("%s: %d %s, want %d", p.method, p.res.StatusCode, b, status)
	}
	return p
}

func pushPath(id string) string { return "/api/conversations/" + id + "/turns?dialect=eliza-actions" }

// folded returns the transcript of a reader that connects now.
func (h *harness) folded(id string) *reader {
	h.t.Helper()
	r := &reader{t: h.t}
	h.events(id).until(r, func() bool { return r.resets == 1 })
	return r
}

func TestIngest(t *testing.T) {
	h := newHarness(t, options{})
	id := h.create()
	p := h.produce(http.MethodPost, pushPath(id)).wantStatus(http.StatusCreated) // the headers arrive before the body
	turn := p.res.Header.Get("Leat-Turn")
	if p.res.Header.Get("Location") != "/api/turns/"+turn+"/ingest" || turn == "" {
		t.Errorf("headers %v", p.res.Header)
	}
	viewer, r := h.events(id), &reader{t: t}
	first := strings.Index(body, "\n") + 1
	p.write(body[:first]).acked(int64(first))
	viewer.until(r, func() bool { return r.text() == "assistant: Grüße, " }) // shown before the body ends
	p.write(body[first:]).end()
	l := p.last()
	if !*l.Ended || l.Outcome != "completed" || l.State != "ended" || l.Offset != int64(len(body)) || l.Error != "" {
		t.Errorf("last line %+v", l)
	}
	viewer.until(r, func() bool { return r.state(turn) == "ended" })
	if r.text() != bodyText || r.fold.Turn(turn).EndSeq != l.Seq {
		t.Errorf("text %q, end at %d, acknowledged %d", r.text(), r.fold.Turn(turn).EndSeq, l.Seq)
	}
	res := h.open(http.MethodHead, p.res.Header.Get("Location"), nil)
	if res.StatusCode != 200 || res.Header.Get("Leat-Turn-State") != "ended" || res.Header.Get("Leat-Turn-Outcome") != "completed" {
		t.Errorf("HEAD after the end: %d %v", res.StatusCode, res.Header)
	}
	h.refused(http.MethodPatch, p.res.Header.Get("Location"), "x", 409, gateway.ReasonAnswered, "Upload-Offset", "0")
}

// TestIngestInterrupted interrupts the body at every byte and resumes at the offset that the gateway returns.
func TestIngestInterrupted(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 7
	}
	h := newHarness(t, options{})
	for at := 0; at <= len(body); at += step {
		id := h.create()
		p := h.produce(http.MethodPost, pushPath(id)).wantStatus(http.StatusCreated)
		where := p.res.Header.Get("Location")
		p.write(body[:at])
		boundary := int64(strings.LastIndex(body[:at], "\n") + 1)
		if boundary > 0 && int(boundary) < len(body) {
			p.acked(boundary)
		}
		_ = p.conn.Close()

		res := h.open(http.MethodHead, where, nil)
		if at == len(body) {
			// The stream was complete, so the turn ends whatever happened to the connection. Ask until it has.
			for res.Header.Get("Leat-Turn-State") != "ended" {
				res = h.open(http.MethodHead, where, nil)
			}
		} else {
			// An incomplete frame does not count. Bytes sent before the interruption may still arrive.
			offset, err := strconv.ParseInt(res.Header.Get("Upload-Offset"), 10, 64)
			if err != nil || offset != boundary || res.Header.Get("Leat-Turn-State") != "running" {
				t.Fatalf("cut at %d: HEAD says %v, want offset %d", at, res.Header, boundary)
			}
			p = h.produce(http.MethodPatch, where, "Upload-Offset", strconv.FormatInt(offset, 10)).wantStatus(http.StatusOK)
			if l := p.write(body[offset:]).end().last(); !*l.Ended || l.Offset != int64(len(body)) || l.Outcome != "completed" {
				t.Fatalf("cut at %d: last line %+v", at, l)
			}
		}
		if got := h.folded(id).text(); got != bodyText {
			t.Fatalf("cut at %d: text %q", at, got)
		}
	}
}

func TestIngestOffsets(t *testing.T) {
	h := newHarness(t, options{})
	id := h.create()
	p := h.produce(http.MethodPost, pushPath(id)).wantStatus(http.StatusCreated)
	where, turn := p.res.Header.Get("Location"), p.res.Header.Get("Leat-Turn")
	first := strings.Index(body, "\n") + 1
	p.write(body[:first]).acked(int64(first))
	_ = p.conn.Close()
	for _, offset := range []string{"0", strconv.Itoa(first - 1), strconv.Itoa(first + 1), "99999999"} {
		res := h.open(http.MethodPatch, where, strings.NewReader("x"), "Upload-Offset", offset)
		b, _ := io.ReadAll(res.Body)
		valid(t, "error", b)
		if res.StatusCode != 409 || res.Header.Get("Upload-Offset") != strconv.Itoa(first) {
			t.Errorf("PATCH at %s: %d %v", offset, res.StatusCode, res.Header)
		}
	}
	for _, offset := range []string{"", "-1", "x", "1.5", "99999999999999999999999"} {
		h.refused(http.MethodPatch, where, "x", 400, server.ReasonInvalid, "Upload-Offset", offset)
	}
	// The refused requests changed nothing.
	p = h.produce(http.MethodPatch, where, "Upload-Offset", strconv.Itoa(first)).wantStatus(200)
	if l := p.write(body[first:]).end().last(); l.Outcome != "completed" {
		t.Errorf("last line %+v", l)
	}
	r := h.folded(id)
	if r.text() != bodyText || r.state(turn) != "ended" {
		t.Errorf("text %q", r.text())
	}
}

// A repeat of the request with the same key continues the first turn, and nothing committed is repeated.
func TestIngestRepeated(t *testing.T) {
	h := newHarness(t, options{})
	id := h.create()
	p := h.produce(http.MethodPost, pushPath(id), "Idempotency-Key", "k").wantStatus(201)
	first := strings.Index(body, "\n") + 1
	p.write(body[:first]).acked(int64(first))
	_ = p.conn.Close()
	again := h.produce(http.MethodPost, pushPath(id), "Idempotency-Key", "k").wantStatus(201)
	if again.res.Header.Get("Leat-Turn") != p.res.Header.Get("Leat-Turn") {
		t.Error("another turn")
	}
	if l := again.write(body).end().last(); l.Outcome != "completed" || l.Offset != int64(len(body)) {
		t.Errorf("last line %+v", l)
	}
	if got := h.folded(id).text(); got != bodyText {
		t.Errorf("text %q", got)
	}
	res := h.open(http.MethodPost, pushPath(id), strings.NewReader(body), "Idempotency-Key", "k")
	if b, _ := io.ReadAll(res.Body); res.StatusCode != 409 || res.Header.Get("Leat-Turn") == "" {
		t.Errorf("after the end: %d %s", res.StatusCode, b)
	}
	h.refused(http.MethodPost, pushPath(id)+"&answers=m1", body, 409, gateway.ReasonConflict, "Idempotency-Key", "k")
}

// A second connection takes over, and the first one gets the reason.
func TestIngestTakenOver(t *testing.T) {
	h := newHarness(t, options{})
	id := h.create()
	p := h.produce(http.MethodPost, pushPath(id)).wantStatus(201)
	first := strings.Index(body, "\n") + 1
	p.write(body[:first]).acked(int64(first))
	second := h.produce(http.MethodPatch, p.res.Header.Get("Location"), "Upload-Offset", strconv.Itoa(first)).wantStatus(200)
	p.write(body[first:])
	if l := p.last(); *l.Ended || l.Reason != gateway.ReasonConflict || l.Status != 409 || l.Offset != int64(first) {
		t.Errorf("the first's last line %+v", l)
	}
	if l := second.write(body[first:]).end().last(); l.Outcome != "completed" {
		t.Errorf("the second's last line %+v", l)
	}
	if got := h.folded(id).text(); got != bodyText {
		t.Errorf("text %q", got)
	}
}

// A stop reaches a silent producer and one that waits in the queue.
func TestIngestStopped(t *testing.T) {
	for _, queued := range []bool{false, true} {
		t.Run(fmt.Sprintf("queued %v", queued), func(t *testing.T) {
			h := newHarness(t, options{})
			id := h.create()
			if queued {
				h.produce(http.MethodPost, pushPath(id)).wantStatus(201)
			}
			p := h.produce(http.MethodPost, pushPath(id)).wantStatus(201)
			p.write(body[:20])
			turn := p.res.Header.Get("Leat-Turn")
			h.do(http.MethodPost, "/api/conversations/"+id+"/commands", `{"type":"stop","turn":"`+turn+`"}`, "ack")
			if l := p.last(); !*l.Ended || l.Outcome != "cancelled" {
				t.Errorf("last line %+v", l)
			}
		})
	}
}

// The producer of a queued turn is accepted at once; its stream is read when the turn starts.
func TestIngestQueued(t *testing.T) {
	h := newHarness(t, options{})
	id := h.create()
	before := h.produce(http.MethodPost, pushPath(id)).wantStatus(201)
	p := h.produce(http.MethodPost, pushPath(id)).wantStatus(201)
	where := p.res.Header.Get("Location")
	if res := h.open(http.MethodHead, where, nil); res.Header.Get("Leat-Turn-State") != "queued" || res.Header.Get("Upload-Offset") != "0" {
		t.Errorf("HEAD of a queued turn: %v", res.Header)
	}
	_ = p.conn.Close()
	p = h.produce(http.MethodPatch, where, "Upload-Offset", "0").wantStatus(200)
	p.write(body).end()
	if l := before.write(body).end().last(); l.Outcome != "completed" {
		t.Errorf("the turn before: %+v", l)
	}
	if l := p.last(); l.Outcome != "completed" {
		t.Errorf("the queued turn: %+v", l)
	}
	if got := h.folded(id).text(); got != bodyText+"\n"+bodyText {
		t.Errorf("text %q", got)
	}
}

func TestIngestEnds(t *testing.T) {
	cut := strings.Index(body, "\n") + 1
	for name, c := range map[string]struct {
		body string
		want ingestLine
		text string
	}{
		"whole but without its end": {body[:cut], ingestLine{Offset: int64(cut), State: "running"}, "assistant: Grüße, "},
		"half a frame":              {body[:cut+5], ingestLine{Offset: int64(cut), State: "running"}, "assistant: Grüße, "},
		"nothing":                   {"", ingestLine{State: "running"}, ""},
		"more after the end":        {body + body, ingestLine{Offset: int64(len(body)), State: "ended", Outcome: "completed"}, bodyText},
		"the agent's own error": {
			body[:cut] + `{"type":"error","message":"no luck"}` + "\n",
			ingestLine{Offset: int64(cut + 37), State: "ended", Outcome: "failed", Error: "no luck"},
			"assistant: Grüße, ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, options{})
			id := h.create()
			l := h.produce(http.MethodPost, pushPath(id)).wantStatus(201).write(c.body).end().last()
			if l.Offset < c.want.Offset || (l.Offset > c.want.Offset && name != "more after the end") || l.State != c.want.State || l.Outcome != c.want.Outcome || *l.Ended != (c.want.State == "ended") || l.Error != c.want.Error || l.Status != 0 {
				t.Errorf("last line %+v, want %+v", l, c.want)
			}
			if got := h.folded(id).text(); got != c.text {
				t.Errorf("text %q", got)
			}
		})
	}
}

// A stream that can't be decoded fails the turn, and the producer gets the error.
func TestIngestInvalid(t *testing.T) {
	for name, bad := range map[string]string{
		"broken JSON": "{\"type\":\"chunk\",\n", "no object": "[]\n", "not UTF-8": "{\"type\":\"chunk\",\"text\":\"\xff\xfe\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, options{})
			id := h.create()
			first := strings.Index(body, "\n") + 1
			p := h.produce(http.MethodPost, pushPath(id)).wantStatus(201)
			l := p.write(body[:first]).write(bad).last()
			if !*l.Ended || l.Outcome != "failed" || l.Reason != server.ReasonStream || l.Status != 422 || !strings.Contains(l.Error, "eliza-actions: frame 2") {
				t.Errorf("last line %+v", l)
			}
			r := h.folded(id)
			if r.text() != "assistant: Grüße, " {
				t.Errorf("text %q: the text before it must stay", r.text())
			}
		})
	}
}

func TestIngestRefused(t *testing.T) {
	h := newHarness(t, options{})
	id := h.create()
	for name, c := range map[string]struct {
		path   string
		status int
		reason string
		header []string
	}{
		"no dialect":           {"/api/conversations/" + id + "/turns", 400, gateway.ReasonDialect, nil},
		"unknown dialect":      {"/api/conversations/" + id + "/turns?dialect=klingon", 400, gateway.ReasonDialect, nil},
		"unknown conversation": {pushPath("nowhere"), 404, server.ReasonNotFound, nil},
		"unknown message":      {pushPath(id) + "&answers=m1", 404, gateway.ReasonUnknown, nil},
		"oversize id":          {pushPath(id) + "&answers=" + strings.Repeat("m", 300), 400, gateway.ReasonInvalid, nil},
		"encoded":              {pushPath(id), 415, server.ReasonInvalid, []string{"Content-Encoding", "gzip"}},
		"wrong token":          {pushPath(id), 401, server.ReasonUnauthorized, []string{"Authorization", "Bearer x"}},
	} {
		t.Run(name, func(t *testing.T) { h.refused(http.MethodPost, c.path, body, c.status, c.reason, c.header...) })
	}
	t.Run("a refusal does not wait for the body", func(t *testing.T) {
		h := *h
		h.header = http.Header{"Authorization": {"Bearer wrong"}}
		h.produce(http.MethodPost, pushPath(id)).wantStatus(401)
	})
	turn := h.send(id, "hi").Turn
	h.refused(http.MethodPatch, "/api/turns/"+turn+"/ingest", "x", 404, server.ReasonNotFound, "Upload-Offset", "0")
	if res := h.open(http.MethodHead, "/api/turns/"+turn+"/ingest", nil); res.StatusCode != 404 {
		t.Errorf("HEAD of a turn without a producer: %d", res.StatusCode)
	}
}

// A client that waits for permission to send its body gets it, whether its connection is taken over or not.
func TestIngestExpects(t *testing.T) {
	for head, sent := range map[string]string{
		fmt.Sprintf("Content-Length: %d", len(body)): body,
		"Transfer-Encoding: chunked":                 fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body),
	} {
		t.Run(head, func(t *testing.T) {
			h := newHarness(t, options{})
			id := h.create()
			var d net.Dialer
			conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(h.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nExpect: 100-continue\r\n%s\r\n\r\n", pushPath(id), token, head)
			in := bufio.NewReader(conn)
			for _, want := range []int{100, 201} {
				res, err := http.ReadResponse(in, nil)
				if err != nil || res.StatusCode != want {
					t.Fatalf("%v, %v; want %d", res, err, want)
				}
				if want == 100 {
					_, _ = io.WriteString(conn, sent)
					continue
				}
				if b, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(b), `"outcome":"completed"`) || !res.Close {
					t.Errorf("%v after %q, close %t", err, b, res.Close)
				}
			}
			if got := h.folded(id); got.text() != bodyText {
				t.Errorf("text %q", got.text())
			}
		})
	}
}

// At a shutdown the producer gets the reason, and can resume the turn with the next process.
func TestIngestShutdown(t *testing.T) {
	h := newHarness(t, options{})
	id := h.create()
	p := h.produce(http.MethodPost, pushPath(id)).wantStatus(201)
	first := strings.Index(body, "\n") + 1
	p.write(body[:first]).acked(int64(first))
	go h.stop()
	if l := p.last(); *l.Ended || l.Reason != server.ReasonUnavailable || l.Status != 503 || l.Offset != int64(first) {
		t.Errorf("last line %+v", l)
	}
	h.stop()
}
