package server_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

type thing struct {
	Name string                     `json:"name"`
	Any  map[string]json.RawMessage `json:"any"`
}

func TestDecode(t *testing.T) {
	s := server.New(server.Options{})
	var got thing
	handler := func(decode func(*http.Request, any) error) server.Handler {
		return func(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
			got = thing{}
			if err := decode(r, &got); err != nil {
				return err
			}
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
	}
	s.Handle(server.Route{Method: "POST", Pattern: "/strict", Access: server.Public, MaxBody: 200, Handler: handler(server.DecodeStrict)})
	s.Handle(server.Route{Method: "POST", Pattern: "/lax", Access: server.Public, MaxBody: 200, Handler: handler(server.Decode)})
	for name, c := range map[string]struct {
		path, body string
		status     int
		want       string // in the error, or the name
	}{
		"good":                     {"/strict", `{"name":"é😀 \ud83d\ude00"}`, 204, "é😀 😀"},
		"nothing":                  {"/strict", ` `, 204, ""},
		"unknown key":              {"/strict", `{"name":"x","nme":1}`, 400, `unknown field "nme"`},
		"unknown key, lax":         {"/lax", `{"name":"x","nme":1}`, 204, "x"},
		"not UTF-8":                {"/lax", "{\"name\":\"\xff\"}", 400, "UTF-8"},
		"lone high surrogate":      {"/lax", `{"name":"\ud83d"}`, 400, "surrogate"},
		"lone low surrogate":       {"/lax", `{"name":"x\uDE00"}`, 400, "surrogate"},
		"high then something else": {"/lax", `{"name":"\ud83d\u0041"}`, 400, "surrogate"},
		"high at the end":          {"/lax", `{"name":"\ud83d`, 400, "surrogate"},
		"escaped backslash":        {"/lax", `{"name":"\\ud83d"}`, 204, `\ud83d`},
		"NUL":                      {"/lax", `{"name":"a\u0000b"}`, 204, "a\x00b"},
		"broken":                   {"/lax", `{"name":`, 400, "ends too early"},
		"broken inside":            {"/lax", `{"name":x}`, 400, "broken JSON at byte 9"},
		"two values":               {"/lax", `{"name":"x"}{}`, 400, "data after"},
		"wrong type":               {"/lax", `{"name":1}`, 400, "name can't be a JSON number"},
		"not an object":            {"/lax", `[1]`, 400, "object is needed"},
		"proto":                    {"/lax", `{"__proto__":{"admin":true}}`, 400, "__proto__"},
		"proto inside":             {"/lax", `{"any":{"a":[{"b":1,"__proto__":1}]}}`, 400, "__proto__"},
		"proto escaped":            {"/lax", `{"any":{"\u005f_proto__":1}}`, 400, "__proto__"},
		"proto in a text":          {"/lax", `{"name":"__proto__","any":{"x":"__proto__"}}`, 204, "__proto__"},
		"proto in a list":          {"/lax", `{"any":{"x":["__proto__",{"y":"__proto__"}]},"name":"n"}`, 204, "n"},
		"too large":                {"/lax", `{"name":"` + strings.Repeat("a", 300) + `"}`, 413, "larger than 200 bytes"},
		"too deep":                 {"/lax", `{"any":{"x":` + strings.Repeat("[", 150), 400, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(http.MethodPost, "http://localhost"+c.path, strings.NewReader(c.body))
			w := record(s, r)
			if w.Code != c.status {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if c.status == 204 && got.Name != c.want {
				t.Errorf("name %q, want %q", got.Name, c.want)
			}
			var e struct{ Error string }
			if err := json.Unmarshal(w.Body.Bytes(), &e); c.status != 204 && (err != nil || !strings.Contains(e.Error, c.want)) {
				t.Errorf("error %s does not say %q", w.Body, c.want)
			}
			if strings.Contains(w.Body.String(), "server_test") || strings.Contains(w.Body.String(), "Go struct") {
				t.Errorf("the error mentions Go types: %s", w.Body)
			}
		})
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, s := range []string{`{"a":"\ud83d\ude00"}`, `{"a":"\ud83d"}`, `{"__proto__":1}`, `{"a":"\\ud83d"}`, "\xff", `{"a":"\u`, `{"\u005f_proto__":[]}`, `[[{"a":[]}]]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var got, want any
		if server.Unmarshal(b, &got, false) != nil {
			return
		}
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatalf("%q was taken, but encoding/json says: %v", b, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: got %v, want %v", b, got, want)
		}
		check(t, got)
	})
}

// check looks for what Unmarshal refuses.
func check(t *testing.T, v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if k == "__proto__" {
				t.Fatal("__proto__ came through")
			}
			check(t, e)
		}
	case []any:
		for _, e := range v {
			check(t, e)
		}
	case string:
		if !utf8.ValidString(v) {
			t.Fatalf("%q came through", v)
		}
	}
}
