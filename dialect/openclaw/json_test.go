package openclaw

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

var jsonSeeds = []string{
	`{}`, `{"a":1}`, `{"a":-0.5e+7,"b":[1,2,{"c":null}],"d":"x"}`, `{"a":"\u00e9\ud83d\ude00\n\"\\"}`, `{"a":"\ud83d"}`, `{"a":"\ud83dx"}`,
	` { "a" : [ ] , "b" : { } } `, `{"a":01}`, `{"a":.5}`, `{"a":1.}`, `{"a":-}`, `{"a":1e}`, `{"a":tru}`, `{"a":"x}`, `{"a":"\x"}`, `{"a":"\u12"}`,
	`{,}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":[1,]}`, `{"a":[,1]}`, `{"a":1}}`, `{"a":1 "b":2}`, `[1]`, `null`, ``, `{"a":"` + "\xff" + `"}`, "{\"a\":\"\x00\"}",
	`{"a":` + strings.Repeat("[", 50) + strings.Repeat("]", 50) + `}`, `{1:2}`, `{"a":"x"`, `{"\u0061":"b"}`,
}

// sameAsStandard checks that the cursor agrees with encoding/json.
func sameAsStandard(t *testing.T, b []byte) {
	t.Helper()
	c := cursor{b: b}
	got := map[string]string{}
	object := c.enter('{')
	var key []byte
	for object && c.next(&key) {
		k := string(key)
		if v := c.bytes(); v != nil {
			got[k] = string(v)
		} else {
			delete(got, k)
		}
	}
	valid := c.atEnd() && object

	var m map[string]any
	err := json.Unmarshal(b, &m)
	if want := err == nil && m != nil; valid != want {
		t.Fatalf("%q: valid %v, encoding/json says %v", b, valid, err)
	}
	if !valid || !utf8.Valid(b) { // keys are not mended
		return
	}
	want := map[string]string{}
	for k, v := range m {
		if s, ok := v.(string); ok {
			want[k] = s
		}
	}
	for k, v := range want {
		if got[k] != v {
			t.Fatalf("%q: %q is %q, want %q", b, k, got[k], v)
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%q: strings %q, want %q", b, got, want)
	}
}

func TestCursor(t *testing.T) {
	for _, s := range jsonSeeds {
		sameAsStandard(t, []byte(s))
	}
}

func TestCursorValues(t *testing.T) {
	c := cursor{b: []byte(`{"i":-7,"f":1.5,"s":"x","t":true,"n":null,"r":{"a":[1]}}`)}
	c.enter('{')
	var key []byte
	var i, f int64
	var tr, n bool
	var r []byte
	for c.next(&key) {
		switch string(key) {
		case "i":
			i = c.int()
		case "f":
			f = c.int()
		case "t":
			tr = c.bool()
		case "n":
			n = c.raw() != nil
		case "r":
			r = c.raw()
		default:
			c.skip()
		}
	}
	if !c.atEnd() || i != -7 || f != 0 || !tr || n || string(r) != `{"a":[1]}` {
		t.Errorf("%v %d %d %v %v %s", c.bad, i, f, tr, n, r)
	}
}

func TestSnapshotEnds(t *testing.T) {
	for in, want := range map[string]string{
		`"a\ud83d"`: "a", `"a\uD83D"`: "a", `"a\\ud83d"`: `a\ud83d`, `"a\\\ud83d"`: `a\`, `"\ud83d\ude00"`: "😀", `"a\ude00"`: "a\ufffd", `"a\u0041"`: "aA", `"\ud83dx"`: "\ufffdx",
	} {
		c := cursor{b: []byte(in)}
		if got := c.snapshot(); got != want || !c.atEnd() {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

func FuzzCursor(f *testing.F) {
	for _, s := range jsonSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) { sameAsStandard(t, b) })
}
