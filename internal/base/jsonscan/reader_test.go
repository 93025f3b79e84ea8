package jsonscan

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// sample has every kind of field.
type sample struct {
	Type  string          `json:"type"`
	Index int             `json:"index"`
	Seq   *int64          `json:"seq"`
	Delta json.RawMessage `json:"delta"`
	Known bool            `json:"known"`
	Inner *inner          `json:"inner"`
	Value inner           `json:"value"`
	List  []inner         `json:"list"`
	Names []string        `json:"names"`
	Args  *json.RawMessage
	Code  json.Number       `json:"code"`
	Map   map[string]string `json:"map"`
	Any   any               `json:"any"`
	extra
}

// readable is a type of which a Reader can read everything itself, unlike sample, whose field Args has no tag.
type readable struct {
	Type  string           `json:"type"`
	Index int              `json:"index"`
	Seq   *int64           `json:"seq,omitempty"`
	Delta json.RawMessage  `json:"delta"`
	Known bool             `json:"known"`
	Inner *inner           `json:"inner"`
	Value inner            `json:"value"`
	List  []inner          `json:"list"`
	Names []string         `json:"names"`
	Args  *json.RawMessage `json:"args"`
	Code  json.Number      `json:"code"`
	Map   map[string]int   `json:"map,omitempty"`
	Short inner            `json:"short,omitzero"`
	Empty []string         `json:"empty,omitempty"`
	Maybe *inner           `json:"maybe,omitempty"`
	Bytes []byte           `json:"bytes,omitempty"`
	Word  string           `json:"word,omitempty"`
	own
	// A Reader leaves a number of this type to encoding/json, and Append writes it.
	Sum uint64 `json:"sum,omitempty"`
	extra
}

// own has a field whose type has methods for both directions.
type own struct {
	Own written `json:"own,omitzero"`
}

// written writes its own JSON.
type written struct{ N int }

func (w written) MarshalJSON() ([]byte, error) { return w.AppendJSON(nil) }

func (w *written) AppendJSON(b []byte) ([]byte, error) {
	return strconv.AppendInt(b, int64(w.N), 10), nil
}

func (w *written) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &w.N) }

// extra is embedded, so its fields belong to the object around it.
type extra struct {
	Model string `json:"model"`
}

// inner contains itself.
type inner struct {
	Text  string  `json:"text"`
	Next  *inner  `json:"next"`
	Parts []inner `json:"parts"`
}

// frames are usual, unusual and invalid.
var frames = []string{
	`{"type":"delta","index":3,"seq":17,"delta":"a\u00e9","known":true,"inner":{"text":"x"},"value":{"text":"y"},"names":["a","b"],"model":"m"}`,
	`{"type":"delta","index":3,"seq":18,"delta":"b","known":false,"inner":{"text":"x","next":{"text":"z"}},"list":[{"text":"1"},{"parts":[{"text":"2"}]}]}`,
	` { "type" : "delta" , "list" : [ { "text" : "3" } , { } ] , "other" : [ 1 , -2.5e+3 , { "a" : null } , true , false , "\ud83d\ude00" ] } `,
	`{"type":"a\"\\\/\b\f\n\r\t\u0041\ud83d\ude00\ud83d\u00e9\udc00 é` + "\xff" + `","list":[],"names":null,"seq":null,"delta":null,"inner":null,"value":null,"known":null,"index":null,"type2":null}`,
	`{"type":"a","args":{"x":[1, 2]},"code":5}`,
	`{"type":"a","args":null,"code":"x"}`,
	`{"map":{"b":1,"a":2},"short":{"text":"<&>"},"empty":["a","\u2028\u0000\u007f"],"maybe":{"parts":null},"bytes":"YQ==","word":"w","own":5,"sum":18446744073709551615}`,
	`{"map":{},"short":{},"empty":[],"maybe":null,"bytes":"","word":"","own":0}`, `{"short":{"parts":[]},"bytes":"!","own":"x"}`,
	`{}`, `[]`, `null`, `"a"`, `17`, ``, `{`, `{"type"`, `{"type":`, `{"type":"a"`, `{"type":"a",}`, `{"type":"a"}}`, `{"type":"a"},`, `{,}`, `{"type" "a"}`,
	`{"type":"a","type":"b"}`, `{"Type":"a"}`, `{"TYPE":"a","type":"b"}`, `{"\u0074ype":"a"}`, "{\"t\xffpe\":1}", `{"ſeq":5}`, `{"Known":true,"index":-0}`,
	`{"inner":{"text":"a"},"inner":{"next":{}}}`, `{"list":[{"text":"a"}],"list":[{}]}`,
	`{"index":1.0}`, `{"index":1e2}`, `{"index":01}`, `{"index":-}`, `{"index":9223372036854775807}`, `{"index":99999999999999999999}`, `{"index":"1"}`, `{"index":-12}`,
	`{"type":1}`, `{"type":[]}`, `{"known":1}`, `{"known":tru}`, `{"known":truefalse}`, `{"names":["a",]}`, `{"names":["a" "b"]}`, `{"names":{}}`, `{"names":[1]}`, `{"value":[]}`,
	`{"x":[1,]}`, `{"x":[,1]}`, `{"x":{"a"}}`, `{"x":{"a":1,}}`, `{"x":{"a":1]}`, `{"x":[1}}`, `{"x":-}`, `{"x":1.}`, `{"x":.1}`, `{"x":1e}`, `{"x":00}`, `{"x":nul}`, `{"x":+1}`,
	"{\"x\":\"\x01\"}", "{\"type\":\"\n\"}", `{"type":"\x"}`, `{"type":"\u12g4"}`, `{"type":"\`, `{"type":"`, "{\"type\":\"a\"}\x00", "\ufeff{}",
	strings.Repeat(`{"next":`, 300) + "1" + strings.Repeat("}", 300),
	`{"inner":` + strings.Repeat(`{"next":`, 300) + "{}" + strings.Repeat("}", 301),
	`{"x":` + strings.Repeat("[", 10001) + strings.Repeat("]", 10001) + `}`,
	`{"x":` + strings.Repeat("[", 150) + strings.Repeat("]", 150) + `}`,
}

// compare reads frames with one Reader and compares each result and error with those of encoding/json.
func compare[T any](t *testing.T, frames ...[]byte) {
	t.Helper()
	var last T
	r, w := NewReader[T](), NewWriter[T]()
	for _, b := range frames {
		var want T
		wantErr := json.Unmarshal(b, &want)
		got, err := r.Read(&last, b)
		if wantErr != nil {
			if !reflect.DeepEqual(err, wantErr) {
				t.Fatalf("%.200q: %v; encoding/json says %v", b, err, wantErr)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Fatalf("%.200q: %v\n%+v; encoding/json says\n%+v", b, err, got, want)
		}
		wantJSON, wantErr := json.Marshal(&want)
		gotJSON, err := w.Append(nil, &want)
		if !reflect.DeepEqual(err, wantErr) || wantErr == nil && string(gotJSON) != string(wantJSON) {
			t.Fatalf("Append: %s, %v; encoding/json says %s, %v", gotJSON, err, wantJSON, wantErr)
		}
	}
}

// Every frame is read after every other one.
func TestReader(t *testing.T) {
	for _, a := range frames {
		for _, b := range frames {
			compare[readable](t, []byte(a), []byte(b), []byte(a))
		}
		compare[sample](t, []byte(a))
		compare[[]readable](t, []byte("["+a+","+a+"]"), []byte("["+a+"]"), []byte(a))
		compare[[]json.RawMessage](t, []byte("["+a+", "+a+"]"), []byte("["+a+"]"), []byte(a))
	}
}

// The common form is read without encoding/json, and a repeated frame without allocations.
func TestReaderReuse(t *testing.T) {
	r := NewReader[readable]()
	var last readable
	for _, f := range frames[:4] {
		b := []byte(f)
		if _, ok := r.Try(&last, b); !ok {
			t.Fatalf("%s isn't read", b)
		}
		escaped := strings.Contains(f, `"type":"a\`)
		if n := testing.AllocsPerRun(100, func() { r.Try(&last, b) }); n > 0 && !escaped {
			t.Errorf("%s: %v allocations", b, n)
		}
	}
	if _, ok := NewReader[sample]().Try(&sample{}, []byte(frames[0])); ok {
		t.Error("a type with a field of unknown name is read")
	}
}

// A huge frame is not kept in memory.
func TestReaderHuge(t *testing.T) {
	var last readable
	huge := []byte(`{"type":"` + strings.Repeat("x", maxReused) + `"}`)
	v, ok := NewReader[readable]().Try(&last, huge)
	if !ok || len(v.Type) != maxReused || last.Type != "" {
		t.Errorf("%v, %d bytes, of which %d remain", ok, len(v.Type), len(last.Type))
	}
}

// A Reader gives the values and errors of encoding/json, whatever the frame before was, and Append writes them back like it.
func FuzzReader(f *testing.F) {
	for _, frame := range frames {
		f.Add([]byte(frames[0]), []byte(frame))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		compare[readable](t, a, b, a)
		compare[[]inner](t, a, b, a)
	})
}

// Both packages accept the same tokens, with the same meaning.
func FuzzUnquote(f *testing.F) {
	f.Add([]byte(`"a\ud83d\ude00\ud83d\u00e9\udc00\n"`))
	f.Fuzz(func(t *testing.T, token []byte) {
		n, escaped := TokenLen(token)
		var want string
		if err := json.Unmarshal(token, &want); (err == nil) != (n > 0 && n == len(token)) && n == len(token) {
			t.Fatalf("%q: a token of %d bytes; encoding/json says %v", token, n, err)
		}
		if n > 0 && n == len(token) {
			if got := Unquote(token[1:n-1], escaped); got != want {
				t.Fatalf("%q: %q; encoding/json says %q", token, got, want)
			}
		}
	})
}

// The limit of ValueLen is the number of objects and arrays in each other.
func TestValueLen(t *testing.T) {
	for _, tt := range []struct {
		in    string
		limit int
		n     int
	}{
		{`1`, 0, 1},
		{` "a" , 2`, 0, 4},
		{`[]`, 0, 0},
		{`[]`, 1, 2},
		{`[[1]]x`, 1, 0},
		{`[[1]]x`, 2, 5},
		{`{"a":{"b":[null]}}`, 3, 18},
		{`{"a":{"b":[null]}}`, 2, 0},
		{``, 9, 0},
		{`{"a"}`, 9, 0},
		{`-`, 9, 0},
		{`tru`, 9, 0},
		{`"a`, 9, 0},
	} {
		if n := ValueLen([]byte(tt.in), tt.limit); n != tt.n {
			t.Errorf("%s, at most %d: %d, want %d", tt.in, tt.limit, n, tt.n)
		}
	}
}

// A value that is skipped is valid.
func FuzzValueLen(f *testing.F) {
	for _, frame := range frames {
		f.Add([]byte(frame))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if n := ValueLen(b, 10000); n > 0 && !json.Valid(b[:n]) {
			t.Fatalf("%q isn't valid", b[:n])
		} else if json.Valid(b) && len(bytes.TrimSpace(b[n:])) > 0 {
			t.Fatalf("%q: %d bytes", b, n)
		}
	})
}
