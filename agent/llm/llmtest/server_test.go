package llmtest_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent/llm/llmtest"
)

// call is a request that is right, for each provider.
type call struct {
	path   string
	header map[string]string
	body   map[string]any
	turns  string // the key of the turns
}

type (
	object = map[string]any
	list   = []any
)

var calls = map[string]call{
	"anthropic": {
		"/v1/messages",
		map[string]string{"X-Api-Key": llmtest.Key, "Anthropic-Version": "2023-06-01"},
		object{"model": llmtest.Model, "max_tokens": 9, "stream": true, "messages": list{object{"role": "user", "content": list{object{"type": "text", "text": "hi"}}}}},
		"messages",
	},
	"openai": {
		"/chat/completions",
		map[string]string{"Authorization": "Bearer " + llmtest.Key},
		object{"model": llmtest.Model, "stream": true, "stream_options": object{"include_usage": true}, "messages": list{object{"role": "user", "content": "hi"}}},
		"messages",
	},
	"responses": {
		"/responses",
		map[string]string{"Authorization": "Bearer " + llmtest.Key},
		object{"model": llmtest.Model, "stream": true, "input": list{object{"role": "user", "content": list{object{"type": "input_text", "text": "hi"}}}}},
		"input",
	},
	"gemini": {
		"/v1beta/models/" + llmtest.Model + ":streamGenerateContent?alt=sse",
		map[string]string{"X-Goog-Api-Key": llmtest.Key},
		object{"contents": list{object{"role": "user", "parts": list{object{"text": "hi"}}}}},
		"contents",
	},
	"ollama": {
		"/api/chat", nil,
		object{"model": llmtest.Model, "stream": true, "messages": list{object{"role": "user", "content": "hi"}}},
		"messages",
	},
}

func post(t *testing.T, url string, c call) int {
	t.Helper()
	b, err := json.Marshal(c.body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+c.path, strings.NewReader(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for k, v := range c.header {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode
}

// The servers take what is right, and refuse what the real ones refuse.
func TestStrict(t *testing.T) {
	for kind, good := range calls {
		t.Run(kind, func(t *testing.T) {
			s := llmtest.New(t, kind)
			if got := post(t, s.URL, good); got != http.StatusOK {
				t.Fatalf("what is right: %d", got)
			}
			for name, spoil := range map[string]func(c *call){
				"unknown parameter": func(c *call) { c.body["surprise"] = 1 },
				"no turns":          func(c *call) { c.body[c.turns] = list{} },
				"user twice":        func(c *call) { c.body[c.turns] = append(c.body[c.turns].(list), c.body[c.turns].(list)[0]) },
				"unknown model": func(c *call) {
					c.path = strings.Replace(c.path, "/"+llmtest.Model+":", "/other:", 1)
					if c.body["model"] != nil {
						c.body["model"] = "other"
					}
				},
				"no key":   func(c *call) { c.header = nil },
				"no route": func(c *call) { c.path = "/v7" + c.path },
			} {
				if name == "no key" && kind == "ollama" {
					continue // it has none
				}
				c := good
				c.body = maps.Clone(good.body)
				spoil(&c)
				if got := post(t, s.URL, c); got/100 != 4 {
					t.Errorf("%s: %d", name, got)
				}
			}
		})
	}
}
