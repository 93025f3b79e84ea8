package jsonscan

import (
	"encoding/json"
	"testing"
)

// read parses {"n":N,"s":"S"} with a scanner.
func read(b []byte) (n int, token []byte, ok bool) {
	s := New(b)
	if !s.Lit(`{"n":`) {
		return 0, nil, false
	}
	if n, ok = s.Int(); !ok || !s.Lit(`,"s":`) {
		return 0, nil, false
	}
	if token, ok = s.String(); !ok {
		return 0, nil, false
	}
	s.Space()
	return n, token, s.Lit("}") && s.End()
}

func TestScanner(t *testing.T) {
	tests := []struct {
		in    string
		n     int
		token string
		ok    bool
	}{
		{`{"n":0,"s":""}`, 0, `""`, true},
		{`{"n":12,"s":"a\"\\\u00e9é"  }  ` + "\n", 12, `"a\"\\\u00e9é"`, true},
		{`{"n":01,"s":""}`, 0, "", false},
		{`{"n":-1,"s":""}`, 0, "", false},
		{`{"n":1.5,"s":""}`, 0, "", false},
		{`{"n":1000000000,"s":""}`, 0, "", false},
		{`{"n":,"s":""}`, 0, "", false},
		{`{"n":1,"s":5}`, 0, "", false},
		{`{"n":1,"s":"a`, 0, "", false},
		{`{"n":1,"s":"a\`, 0, "", false},
		{`{"n":1,"s":"\x"}`, 0, "", false},
		{`{"n":1,"s":"\u00g0"}`, 0, "", false},
		{`{"n":1,"s":"\u00`, 0, "", false},
		{"{\"n\":1,\"s\":\"a\nb\"}", 0, "", false},
		{`{"n":1,"s":"a"}}`, 0, "", false},
		{`{"n":1,"s":"a","x":1}`, 0, "", false},
		{`{"N":1,"s":"a"}`, 0, "", false},
	}
	for _, tt := range tests {
		n, token, ok := read([]byte(tt.in))
		if ok != tt.ok || (ok && (n != tt.n || string(token) != tt.token)) {
			t.Errorf("%s: %d, %s, %v", tt.in, n, token, ok)
		}
	}
}

func FuzzScanner(f *testing.F) {
	f.Add([]byte(`{"n":12,"s":"a\"\\\u00e9é"  }  `))
	f.Fuzz(func(t *testing.T, in []byte) {
		n, token, ok := read(in)
		if !ok {
			return
		}
		var want struct {
			N int             `json:"n"`
			S json.RawMessage `json:"s"`
		}
		if err := json.Unmarshal(in, &want); err != nil || want.N != n || string(want.S) != string(token) {
			t.Fatalf("%q: %d, %s; encoding/json says %d, %s, %v", in, n, token, want.N, want.S, err)
		}
	})
}
