package attacks

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Another user's conversation gets the same response as one that never existed.
func TestForeign(t *testing.T) {
	alice, bob := as("t1", "alice"), as("t1", "bob")
	cousin := as("t2", "alice") // of another tenant, by the same name
	id := create(t, alice...)
	want(t, raw(t, request("POST", "/api/conversations/"+id+"/commands", `{"type":"send","message":{"text":"alice-secret"},"key":"k"}`, alice...)), 200)
	for name, who := range map[string][]string{"bob": bob, "another tenant": cousin, "no tenant": {"Leat-Subject: alice"}} {
		for what, path := range map[string]string{
			"read": "/events", "list": "/messages", "transcript": "/transcript", "conversation": "",
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				theirs := raw(t, request("GET", "/api/conversations/"+id+path, "", who...))
				never := raw(t, request("GET", "/api/conversations/"+strings.Repeat("0", len(id))+path, "", who...))
				want(t, theirs, 404)
				if theirs.body != never.body || theirs.StatusCode != never.StatusCode {
					t.Errorf("a foreign one gives %d %s, none %d %s", theirs.StatusCode, theirs.body, never.StatusCode, never.body)
				}
			})
		}
		for _, command := range []string{"send", "stop", "truncate", "update", "delete", "inject", "answer"} {
			t.Run(name+" "+command, func(t *testing.T) {
				body := fmt.Sprintf(`{"type":%q,"text":"x","turn":"x","request":"x","after":"","title":"x","message":{"text":"x"}}`, command)
				want(t, raw(t, request("POST", "/api/conversations/"+id+"/commands", body, who...)), 404, 400)
			})
		}
		t.Run(name+" key", func(t *testing.T) { // reusing the key of another user's command reveals nothing
			want(t, raw(t, request("POST", "/api/conversations/"+id+"/commands", `{"type":"send","message":{"text":"alice-secret"},"key":"k"}`, who...)), 404)
		})
		t.Run(name+" push", func(t *testing.T) {
			want(t, raw(t, request("POST", "/api/conversations/"+id+"/turns?dialect=eliza-actions", `{"type":"done"}`, who...)), 404)
		})
		t.Run(name+" lists", func(t *testing.T) {
			a := raw(t, request("GET", "/api/conversations", "", who...))
			if strings.Contains(a.body, id) {
				t.Error("it is listed")
			}
		})
	}
	t.Run("operations", func(t *testing.T) {
		for path, method := range map[string]string{"/api/backup": "POST", "/api/agents/check": "POST", "/api/agents/demo/discover": "POST", "/metrics": "GET"} {
			want(t, raw(t, request(method, path, "", append(bob, "X-Forwarded-For: 203.0.113.7")...)), 403)
		}
	})
	t.Run("id of a deleted one", func(t *testing.T) { // the new owner gets no events of the deleted conversation
		id := createAs(t, `{"id":"reused"}`, alice...)
		want(t, raw(t, request("DELETE", "/api/conversations/"+id, "", alice...)), 200, 204)
		want(t, raw(t, request("POST", "/api/conversations", `{"id":"reused"}`, bob...)), 409)
	})
	t.Run("id of another tenant", func(t *testing.T) { // alice@t1 and alice@t2 get the same responses in either order
		mine := createAs(t, `{"id":"chosen"}`, cousin...)
		for name, id := range map[string]string{"taken in t2": "chosen", "free": "unheard"} {
			a := raw(t, request("POST", "/api/conversations", `{"id":"`+id+`"}`, alice...))
			want(t, a, 200)
			if got := conversationOf(t, a); !strings.HasPrefix(got, id+"~") || got == mine {
				t.Errorf("%s: id %q", name, got)
			}
		}
		// The full id of another tenant's conversation, used by a user with a tenant and by one without.
		for name, as := range map[string][]string{"tenant": alice, "no tenant": {"Leat-Subject: alice"}} {
			there := raw(t, request("POST", "/api/conversations", `{"id":"`+mine+`"}`, as...))
			never := raw(t, request("POST", "/api/conversations", `{"id":"`+strings.Replace(mine, "chosen", "absent", 1)+`"}`, as...))
			if there.StatusCode != never.StatusCode || there.StatusCode == 409 {
				t.Errorf("%s: %d for one that is there, %d for one that is not", name, there.StatusCode, never.StatusCode)
			}
		}
	})
	t.Run("cursor of another conversation", func(t *testing.T) {
		mine := create(t, bob...)
		a := raw(t, request("GET", "/api/conversations/"+mine+"/transcript", "", bob...))
		want(t, a, 200)
		if strings.Contains(a.body, "alice-secret") {
			t.Error(a.body)
		}
	})
	t.Run("own command line", func(t *testing.T) { // a user names agents, and does not make them
		a := raw(t, request("POST", "/api/conversations", `{"agent":"exec:id"}`, bob...))
		want(t, a, 400, 503)
	})
}

// GET changes nothing, so that no picture, link or prefetch of another site does.
func TestGetChangesNothing(t *testing.T) {
	id := create(t)
	head := func() int64 {
		a := raw(t, request("GET", "/api/conversations/"+id+"/transcript", ""))
		var v struct {
			Seq int64 `json:"seq"`
		}
		if err := json.Unmarshal([]byte(a.body), &v); err != nil {
			t.Fatal(err, a.body)
		}
		return v.Seq
	}
	before := head()
	for _, path := range []string{"/commands", "/messages", "/messages/truncate", "/turns", "/messages/stream", ""} {
		raw(t, request("GET", "/api/conversations/"+id+path+"?type=send&text=x&dialect=eliza-actions", ""))
		raw(t, request("GET", "/api/conversations/"+id+path+"?_method=DELETE", "", "X-HTTP-Method-Override: DELETE"))
	}
	if after := head(); after != before {
		t.Errorf("the log went from %d to %d", before, after)
	}
}

// No cache stores a response, so none can serve it to another user.
func TestCaches(t *testing.T) {
	id := create(t)
	for _, path := range []string{"/api/conversations", "/api/conversations/" + id + "/messages", "/api/conversations/none", "/api/nothing"} {
		t.Run(path, func(t *testing.T) {
			a := raw(t, request("GET", path, ""))
			if !strings.Contains(a.Header.Get("Cache-Control"), "no-store") {
				t.Errorf("%d: Cache-Control %q", a.StatusCode, a.Header.Get("Cache-Control"))
			}
			if a.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Error("the type can be guessed")
			}
		})
	}
	t.Run("refusals", func(t *testing.T) {
		a := raw(t, request("GET", "/api/conversations", "", anonymous))
		if !strings.Contains(a.Header.Get("Cache-Control"), "no-store") {
			t.Errorf("Cache-Control %q", a.Header.Get("Cache-Control"))
		}
	})
	t.Run("streams", func(t *testing.T) {
		a := raw(t, strings.Replace(request("HEAD", "/api/conversations/"+id+"/events", "", "Accept: text/event-stream"), "Connection: close", "Connection: close", 1))
		cc := a.Header.Get("Cache-Control")
		for _, w := range []string{"private", "no-store", "no-transform"} {
			if !strings.Contains(cc, w) {
				t.Errorf("Cache-Control %q has no %s", cc, w)
			}
		}
	})
	t.Run("origin", func(t *testing.T) {
		a := raw(t, request("GET", "/api/conversations", ""))
		if !strings.Contains(strings.Join(a.Header.Values("Vary"), ","), "Origin") {
			t.Errorf("Vary %q", a.Header.Values("Vary"))
		}
	})
	t.Run("headers of proxies", func(t *testing.T) { // nothing of them comes back
		a := raw(t, request("GET", "/", "", anonymous, "X-Forwarded-Host: evil.example", "X-Forwarded-Prefix: /evil", "X-Original-URL: /evil"))
		all := fmt.Sprint(a.Header) + a.body
		if strings.Contains(all, "evil") {
			t.Error("a header of the request is in the answer")
		}
	})
}
