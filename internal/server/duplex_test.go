package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// lines is a log that several goroutines write.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A panic of a handler whose connection was taken over ends this request alone, and its response doesn't look complete.
func TestDuplex(t *testing.T) {
	log := &lines{}
	s := server.New(server.Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	s.Handle(server.Route{Method: http.MethodPost, Pattern: "/echo", Access: server.Public, Stream: true, MaxBody: -1, Handler: func(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
		d, err := s.OpenDuplex(w, r, http.StatusCreated, server.NDJSON)
		if err != nil {
			return err
		}
		return d.Run(func(context.Context) error {
			b, err := io.ReadAll(d.Body)
			if string(b) == "panic" {
				_ = d.Write([]byte("half"))
				panic("broken")
			}
			return errors.Join(err, d.Write(b))
		})
	}})
	h := httptest.NewServer(s)
	defer h.Close()
	post := func(body string) (string, error) {
		// A reader of a type that net/http doesn't know is sent in chunks.
		res, err := http.Post(h.URL+"/echo", "text/plain", io.MultiReader(strings.NewReader(body)))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		return string(b), err
	}
	if got, err := post("panic"); got != "half" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("after a panic: %q, %v", got, err)
	}
	if got, err := post("hello"); got != "hello" || err != nil {
		t.Errorf("the next request: %q, %v", got, err)
	}
	if text := log.String(); !strings.Contains(text, "handler panicked") || !strings.Contains(text, "broken") {
		t.Errorf("the log has %s", text)
	}
}
