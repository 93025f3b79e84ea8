package eliza_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leat-dev/leat/agent/agenttest"
)

// The stream of a server with callbacks (protocol delta-v2), and its list of messages before and after the answer is stored.
const (
	callbacks = `data: {"type":"token","text":"On it."}

data: {"type":"token","fullText":"On it.\n\nLooking up track..."}

data: {"type":"token","fullText":"On it.\n\nNow playing: **Song**"}

data: {"type":"done","fullText":"On it.\n\nNow playing: **Song**","agentName":"Ada"%s}

`
	earlier = `{"id":"u0","role":"user","text":"hello"},{"id":"a0","role":"assistant","text":"x","actionCallbackHistory":["of another turn"]}`
	asked   = `,{"id":"u1","role":"user","text":"hello"}`
	answer  = `,{"id":"a1","role":"assistant","text":"On it.\n\nNow playing: **Song**","actionCallbackHistory":["Looking up track...","Now playing: **Song**"]}`
)

// The callback history is read from the server's list, even if the server stores the answer later.
func TestCallbackHistory(t *testing.T) {
	all := []string{"Looking up track...", "Now playing: **Song**"}
	for name, c := range map[string]struct {
		done  string
		lists []string // responses to the requests for the list, in order; the last one is repeated
		want  []string
		calls int
	}{
		"stored before the end":           {"", []string{earlier + asked + answer}, all, 1},
		"stored after it":                 {"", []string{earlier + asked, earlier + asked, earlier + asked + answer}, all, 3},
		"known by its id":                 {`,"messageId":"a1","userMessageId":"u1"`, []string{earlier + asked + strings.ReplaceAll(answer, "a1", "a9"), earlier + asked + answer}, all, 2},
		"the stream has it":               {`,"actionCallbackHistory":["of the stream"]`, nil, []string{"of the stream"}, 0},
		"the server does not list":        {"", []string{"error"}, nil, 1},
		"the list is of another language": {"", []string{"garbage"}, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/api/conversations":
					fmt.Fprint(w, `{"conversation":{"id":"e","roomId":"r"}}`)
				case strings.HasSuffix(r.URL.Path, "/stream"):
					w.Header().Set("Content-Type", "text/event-stream")
					fmt.Fprintf(w, callbacks, c.done)
				default:
					list := c.lists[min(calls, len(c.lists)-1)]
					calls++
					if list == "error" {
						http.Error(w, `{"messages":[],"error":"Failed to fetch messages"}`, http.StatusInternalServerError)
						return
					}
					_, _ = io.WriteString(w, `{"messages":[`+list+`]}`)
				}
			}))
			defer h.Close()
			stage := agenttest.NewStage(t.Context())
			if err := stage.Run(newAgent(t, h.URL, ""), input); err != nil {
				t.Fatal(err)
			}
			if got := stage.Visible(); got != "On it.\n\nNow playing: **Song**" {
				t.Errorf("readers see %q", got)
			}
			if d := cmp.Diff(c.want, stage.History(), cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
			if calls != c.calls {
				t.Errorf("%d requests for the list, want %d", calls, c.calls)
			}
		})
	}
}

// The end of an answer without callbacks doesn't wait for the list.
func TestNoCallbackHistory(t *testing.T) {
	s := &server{}
	t.Setenv("ELIZA_TEST_TOKEN", "tok")
	stage := agenttest.NewStage(t.Context())
	if err := stage.Run(newAgent(t, s.serve(t), "?token_env=ELIZA_TEST_TOKEN"), input); err != nil || len(stage.History()) > 0 {
		t.Errorf("%v, %q", err, stage.History())
	}
}
