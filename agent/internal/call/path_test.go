package call

import (
	"net/url"
	"testing"
)

func TestPath(t *testing.T) {
	base, err := url.Parse("https://h.example/base")
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{
		"plain-1":       "https://h.example/base/threads/plain-1/runs",
		"../../admin":   "https://h.example/base/threads/..%2F..%2Fadmin/runs",
		"..":            "https://h.example/base/threads/%2E%2E/runs",
		"a?b=c#d":       "https://h.example/base/threads/a%3Fb=c%23d/runs",
		"%2e%2e%2fevil": "https://h.example/base/threads/%252e%252e%252fevil/runs",
		"ä b":           "https://h.example/base/threads/%C3%A4%20b/runs",
	} {
		if got := Path(base, "threads", id, "runs").String(); got != want {
			t.Errorf("%q: %s, want %s", id, got, want)
		}
	}
}
