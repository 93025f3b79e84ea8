package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestDiscover(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/agents/" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `[{"id":"agent-1","name":"Ann's\u001b[31m"}]`)
	}))
	defer s.Close()
	data := t.TempDir()
	leatHere := func(stdin string, args ...string) (int, string, string) {
		return leatHere(stdin, append(args, "--data", data)...)
	}
	for _, of := range []string{s.URL, "letta:" + s.URL, "ops"} {
		status, out, errs := leatHere("", "agents", "--discover", of, "--agent", "ops=letta:"+s.URL+"?agent=agent-0")
		if status != 0 || !strings.Contains(out, "agent-1") || !strings.Contains(out, "--agent 'letta:"+s.URL+"?agent=agent-1'") || strings.Contains(out, "\x1b") {
			t.Errorf("%s: status %d\n%q\n%s", of, status, out, errs)
		}
	}
	if status, out, _ := leatHere("", "agents", "--json", "--discover", s.URL); status != 0 || !strings.HasPrefix(out, `[{"what":"agent","id":"agent-1",`) {
		t.Errorf("as JSON: status %d\n%s", status, out)
	}
	for of, want := range map[string]string{"demo": "can't list", "ws://127.0.0.1:9": "refused", s.URL + "/elsewhere": "404", "nobody": "unknown kind"} {
		if status, out, errs := leatHere("", "agents", "--discover", of); status != 1 || !strings.Contains(errs, want) {
			t.Errorf("%s: status %d\n%s%s", of, status, out, errs)
		}
	}
}
