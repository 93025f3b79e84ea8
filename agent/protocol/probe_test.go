package protocol

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	wirea2a "github.com/leat-dev/leat/dialect/a2a"
	wirelanggraph "github.com/leat-dev/leat/dialect/langgraph"
)

// If the id of the run is known, the upstream is asked for its status before a silent turn fails.
func TestProbe(t *testing.T) {
	var state string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			var ask struct {
				Method string `json:"method"`
				Params struct {
					ID string `json:"id"`
				} `json:"params"`
			}
			if json.NewDecoder(r.Body).Decode(&ask) != nil || ask.Method != "GetTask" || ask.Params.ID != "T" {
				t.Errorf("%+v", ask)
			}
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":"key","result":{"id":"T","status":{"state":%q}}}`, state)
			return
		}
		if want := "/threads/" + thread("c") + "/runs/R"; r.URL.Path != want {
			t.Errorf("%s, want %s", r.URL, want)
		}
		fmt.Fprintf(w, `{"run_id":"R","status":%q}`, state)
	}))
	defer s.Close()
	registry := dialect.NewRegistry(wirea2a.Dialect(), wirelanggraph.Dialect())
	in := agent.Input{Conversation: "c", Turn: "turn", Key: "key"}
	for kind, states := range map[string]map[string]bool{
		"langgraph": {"pending": true, "running": true, "success": false, "error": false},
		"a2a":       {"TASK_STATE_WORKING": true, "submitted": true, "TASK_STATE_FAILED": false, "completed": false},
	} {
		spec := agent.Spec{Name: kind, Kind: kind, Target: s.URL, Options: map[string]string{}}
		a, err := agent.Kinds(Kinds(registry)).Make(spec)
		if err != nil {
			t.Fatal(err)
		}
		p := a.(agent.Prober)
		if err := p.Probe(t.Context(), in); err == nil {
			t.Errorf("%s: a turn whose run has no name works", kind)
		}
		switch a := a.(type) {
		case *langgraph:
			a.runs.Store("turn", "R")
		case *a2a:
			a.tasks.Store("turn", "T")
		}
		for st, works := range states {
			state = st
			if err := p.Probe(t.Context(), in); (err == nil) != works {
				t.Errorf("%s: %s: %v", kind, st, err)
			}
		}
	}
}
