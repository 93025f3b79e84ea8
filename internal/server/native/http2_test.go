package native_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/native"
)

// A stream and an ingest run on one HTTP/2 connection at the same time, as behind a proxy that multiplexes.
func TestHTTP2(t *testing.T) {
	gw, _, pushes := newInspected(t, options{})
	srv := server.New(server.Options{})
	native.Register(srv, gw)
	native.RegisterIngest(srv, gw, pushes)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx, l) }()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: transport}
	defer func() {
		transport.CloseIdleConnections()
		cancel()
		if err := errors.Join(<-served, gw.Shutdown(context.Background())); err != nil {
			t.Error(err)
		}
	}()
	s, _, err := gw.Create(t.Context(), admin, gateway.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	do := func(method, path string, body io.Reader) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+l.Addr().String()+path, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "application/x-ndjson")
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if res.ProtoMajor != 2 {
			t.Fatalf("HTTP/%d", res.ProtoMajor)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		return res
	}
	e := &events{Response: do(http.MethodGet, "/api/conversations/"+s.ID+"/events", nil), t: t, buf: make([]byte, 4<<10), ndjson: true}
	r := &reader{t: t}
	e.until(r, func() bool { return r.resets == 1 })

	if res := do(http.MethodGet, "/api/ws", nil); res.StatusCode != http.StatusUpgradeRequired {
		t.Errorf("a socket on HTTP/2: %s", res.Status)
	}

	in, out := io.Pipe()
	res := do(http.MethodPost, pushPath(s.ID), in) // the headers arrive before the body is written
	if res.StatusCode != http.StatusCreated {
		t.Fatal(res.Status)
	}
	lines := bufio.NewScanner(res.Body)
	first := strings.Index(body, "\n") + 1
	if _, err := io.WriteString(out, body[:first]); err != nil {
		t.Fatal(err)
	}
	e.until(r, func() bool { return r.text() == "assistant: Grüße, " })
	if _, err := io.WriteString(out, body[first:]); err != nil {
		t.Fatal(err)
	}
	_ = out.Close()
	var last ingestLine
	for lines.Scan() {
		if err := json.Unmarshal(lines.Bytes(), &last); err != nil {
			t.Fatal(err)
		}
	}
	if last.Outcome != "completed" || last.Offset != int64(len(body)) {
		t.Errorf("last line %+v", last)
	}
	e.until(r, func() bool { return r.text() == bodyText })
	_ = e.Body.Close()
}
