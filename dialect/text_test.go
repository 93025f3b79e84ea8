package dialect

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestTextJSON(t *testing.T) {
	tests := []struct {
		name   string
		tokens []string
		want   []string // per token, and what Close gives
	}{
		{"plain", []string{`"ab"`, `"c"`}, []string{"ab", "c", ""}},
		{"escapes", []string{`"\"\\\/\b\f\n\r\t\u00e9"`}, []string{"\"\\/\b\f\n\r\té", ""}},
		{"null is empty", []string{`null`, `""`}, []string{"", "", ""}},
		{"surrogates in one delta", []string{`"\ud83d\ude00"`}, []string{"😀", ""}},
		{"surrogates in two", []string{`"a\ud83d"`, `"\ude00b"`}, []string{"a", "😀b", ""}},
		{"an empty delta between", []string{`"\ud83d"`, `""`, `"\ude00"`}, []string{"", "", "😀", ""}},
		{"lone high before text", []string{`"\ud83d"`, `"x"`}, []string{"", "\ufffdx", ""}},
		{"lone high before an escape", []string{`"\ud83d"`, `"\n"`}, []string{"", "\ufffd\n", ""}},
		{"two highs", []string{`"\ud83d"`, `"\ud83d\ude00"`}, []string{"", "\ufffd😀", ""}},
		{"lone high at the end", []string{`"a\ud83d"`}, []string{"a", "\ufffd"}},
		{"lone low", []string{`"\ude00a"`}, []string{"\ufffda", ""}},
		{"bytes in two", []string{"\"a\xc3\"", "\"\xa9b\""}, []string{"a", "éb", ""}},
		{"bytes in three", []string{"\"\xf0\x9f\"", "\"\x98\"", "\"\x80\""}, []string{"", "", "😀", ""}},
		{"bytes broken off by an escape", []string{"\"\xc3\"", `"\n"`}, []string{"", "\ufffd\n", ""}},
		{"bytes broken off by text", []string{"\"\xe2\x82\"", `"a"`}, []string{"", "\ufffd\ufffda", ""}},
		{"bytes that never were", []string{"\"\xffa\xa9\""}, []string{"\ufffda\ufffd", ""}},
		{"bytes at the end", []string{"\"\xf0\x9f\x98\""}, []string{"", "\ufffd\ufffd\ufffd"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var text Text
			var got []string
			for _, token := range tt.tokens {
				s, err := text.JSON([]byte(token))
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, s)
				text = restoredText(t, text)
			}
			if diff := cmp.Diff(tt.want, append(got, text.Close())); diff != "" {
				t.Error(diff)
			}
			if !text.isComplete() {
				t.Error("the Text is not empty after Close")
			}
		})
	}
}

func TestTextRefuses(t *testing.T) {
	for _, bad := range []string{``, `"`, `17`, `{}`, `nul`, `"\x"`, `"\u12"`, `"\u12g4"`, `"\"`} {
		if s, err := new(Text).JSON([]byte(bad)); !errors.Is(err, ErrNotString) {
			t.Errorf("%s: %q, %v", bad, s, err)
		}
	}
}

func restoredText(t interface{ Fatal(...any) }, text Text) (again Text) {
	b, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &again); err != nil {
		t.Fatal(err)
	}
	return again
}

// TestTextSplit divides the raw text of a JSON string at every position outside an escape: nothing is lost or changed.
func TestTextSplit(t *testing.T) {
	atom := rapid.SampledFrom([]string{"a", "é", "€", "😀", `\n`, `\"`, `\u00e9`, `\ud83d`, `\ude00`, `\ud83d\ude00`, "\xc3", "\xa9", "\xf0", "\x9f"})
	rapid.Check(t, func(t *rapid.T) {
		var text Text
		var whole, out strings.Builder
		for _, atoms := range rapid.SliceOf(rapid.SliceOf(atom)).Draw(t, "deltas") {
			raw := strings.Join(atoms, "")
			whole.WriteString(raw)
			s, err := text.JSON([]byte(`"` + raw + `"`))
			if err != nil {
				t.Fatal(err)
			}
			if !utf8.ValidString(s) {
				t.Fatalf("%q is not UTF-8", s)
			}
			out.WriteString(s)
			text = restoredText(t, text)
		}
		out.WriteString(text.Close())
		var want string
		if err := json.Unmarshal([]byte(`"`+whole.String()+`"`), &want); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Fatalf("%s: got %q, want %q", whole.String(), out.String(), want)
		}
	})
}

func TestTextRaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		var text Text
		var out strings.Builder
		for rest := s; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			out.WriteString(text.Raw(rest[:n]))
			rest = rest[n:]
		}
		out.WriteString(text.Close())
		if out.String() != s {
			t.Fatalf("got %q, want %q", out.String(), s)
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add([]byte(`"\ud83d"`), []byte(`"\ude00"`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var text Text
		x, errX := text.JSON(a)
		one := x + restoredText(t, text).closed()
		y, errY := text.JSON(b)
		if all := x + y + text.Close(); errX == nil && errY == nil && !utf8.ValidString(all) {
			t.Fatalf("%q, %q: got %q", a, b, all)
		}
		var want string
		if json.Unmarshal(a, &want) == nil && a[0] == '"' && a[len(a)-1] == '"' && (errX != nil || one != want) {
			t.Fatalf("%q: got %q, %v; encoding/json returns %q", a, one, errX, want)
		}
	})
}

func (t Text) closed() string { return t.Close() }
