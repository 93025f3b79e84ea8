package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// stored returns the contents of the store without the audit log, which records exports.
func (w *walk) stored() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	logs, err := w.journal.Conversations(w.t.Context(), journal.Query{System: true})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range logs {
		if s.ID == audit.Conversation {
			continue
		}
		s.Compacted = 0 // compaction changes it at any time
		b, err := json.Marshal(s)
		if err != nil {
			w.t.Fatal(err)
		}
		all["log "+s.ID] = string(b)
	}
	keys, err := w.journal.Keys(w.t.Context(), "")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, kv := range keys {
		if !strings.HasPrefix(kv.Key, "audit/") {
			all["key "+kv.Key] = string(kv.Value)
		}
	}
	return all
}

// TestGetRoutesChangeNothing calls every GET route as the owner of what it names and as the admin: a link, a picture or a
// prefetch must not change anything. What a browser sends for another site's page is refused besides.
func TestGetRoutesChangeNothing(t *testing.T) {
	w := newWalk(t)
	owner := persons[0]
	things := w.belongings(owner, "-get")
	if _, err := w.gw.Do(t.Context(), owner.principal(), things["id"], gateway.Command{Type: gateway.CommandStop, Turn: things["turn"]}); err != nil {
		t.Fatal(err)
	}
	f, err := w.gw.Feed(t.Context(), owner.principal(), things["id"])
	if err != nil {
		t.Fatal(err)
	}
	for ended := false; !ended; {
		changed := f.Notify()
		f.View(func(tr *transcript.Transcript) { ended = !tr.Turn(things["turn"]).Unfinished() })
		if !ended {
			<-changed
		}
	}
	f.Release()
	routes := 0
	for _, rt := range w.srv.Routes() {
		if rt.Method != http.MethodGet {
			continue
		}
		routes++
		t.Run(rt.Pattern, func(t *testing.T) {
			w := *w
			w.t = t
			for name, how := range map[string]by{"owner": withToken, "admin": asAdmin} {
				before := w.stored()
				w.ask(rt, things, how, owner)
				after := w.stored()
				for key, value := range after {
					if before[key] != value {
						t.Errorf("as the %s: %s was %q, is %q", name, key, before[key], value)
					}
				}
				for key := range before {
					if _, ok := after[key]; !ok {
						t.Errorf("as the %s: %s is gone", name, key)
					}
				}
			}
		})
	}
	if routes < 20 {
		t.Errorf("%d routes were called", routes)
	}
}

func asAdmin(_ *walk, r *http.Request, _ person) { r.Header.Set("Authorization", "Bearer "+token) }
