package http_test

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/signature"
	"github.com/leat-dev/leat/internal/base/signature/signaturetest"
)

func TestControl(t *testing.T) {
	status := 200
	var got []string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.URL.Path != "/control" || signaturetest.Verify("s3cret", r.Header.Get(signature.Header), b, time.Now(), time.Minute) != nil {
			t.Errorf("%s, signed %q", r.URL.Path, r.Header.Get(signature.Header))
		}
		got = append(got, string(b))
		w.WriteHeader(status)
	})
	a := newAgent(t, url, "?secret=s3cret&control="+url+"/control")
	answerer, steerer := a.(agent.Answerer), a.(agent.Steerer)
	answer := event.Answer{ID: "q", Decision: event.Deny, Text: "no", Subject: "alice"}
	message := agent.Message{ID: "m", Role: event.User, Text: "more"}
	if err := errors.Join(answerer.Answer(t.Context(), input, answer), steerer.Steer(t.Context(), input, message)); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"type":"answer","conversation":"c","turn":"turn","key":"key","answer":{"id":"q","decision":"deny","text":"no","by":"alice"}}`,
		`{"type":"steer","conversation":"c","turn":"turn","key":"key","message":{"id":"m","role":"user","text":"more"}}`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, tt := range []struct {
		status int
		final  bool
	}{{404, true}, {409, true}, {429, false}, {503, false}} {
		status = tt.status
		err := answerer.Answer(t.Context(), input, answer)
		var final *agent.Error
		if err == nil || errors.As(err, &final) != tt.final {
			t.Errorf("%d: answer: %v", status, err)
		}
		if err := steerer.Steer(t.Context(), input, message); !errors.Is(err, agent.ErrNotSteered) {
			t.Errorf("%d: steer: %v", status, err)
		}
	}
	// Without the option answers aren't sent, and messages are queued at once.
	plain := newAgent(t, url, "")
	if _, ok := plain.(agent.Steerer); ok {
		t.Error("an agent without control can be steered")
	}
	if _, ok := plain.(agent.Answerer); ok {
		t.Error("an agent without control can be answered")
	}
}
