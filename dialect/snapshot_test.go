package dialect

import (
	"encoding/json"
	"hash/fnv"
	"strings"
	"testing"

	"github.com/leat-dev/leat/event"
	"pgregory.net/rapid"
)

func TestSnapshot(t *testing.T) {
	var s Snapshot
	for i, step := range []struct {
		text, rest string
		op         event.Type
	}{
		{"", "", ""},
		{"ab", "ab", event.PartAppend},
		{"ab", "", ""},
		{"abcd", "cd", event.PartAppend},
		{"abXdef", "abXdef", event.PartReplace},
		{"abX", "abX", event.PartReplace},
		{"", "", event.PartReplace},
		{"", "", ""},
		{"x", "x", event.PartAppend},
	} {
		if op, rest := s.Next(step.text); op != step.op || rest != step.rest {
			t.Errorf("step %d, %q: %q %q, want %q %q", i, step.text, op, rest, step.op, step.rest)
		}
		if !s.Is(step.text) || s.Len() != int64(len(step.text)) {
			t.Errorf("step %d: Is(%q) is false", i, step.text)
		}
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		s = Snapshot{}
		if err := json.Unmarshal(b, &s); err != nil {
			t.Fatal(err)
		}
	}
	s.Append("yz")
	if op, rest := s.Next("xyz!"); op != event.PartAppend || rest != "!" {
		t.Errorf("after Append: %q %q", op, rest)
	}
}

// TestSnapshotFolds applies the operations that Next returns: the resulting text is the snapshot.
func TestSnapshotFolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Snapshot
		text := ""
		for _, snap := range rapid.SliceOf(rapid.StringMatching(`[ab]{0,5}`)).Draw(t, "snapshots") {
			before := text
			op, rest := s.Next(snap)
			switch op {
			case event.PartAppend:
				text += rest
			case event.PartReplace:
				text = rest
				if strings.HasPrefix(snap, before) {
					t.Fatalf("%q extends %q, but Next returns a replace", snap, before)
				}
			}
			if text != snap {
				t.Fatalf("%q after %q: %q", snap, before, text)
			}
		}
	})
}

func TestDigest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.String()).Draw(t, "parts")
		var d digest
		h := fnv.New128a()
		for _, p := range parts {
			d.add(p)
			_, _ = h.Write([]byte(p))
		}
		whole := strings.Join(parts, "")
		if d != digestOf(whole) {
			t.Fatal("the digest depends on the pieces")
		}
		if whole == "" {
			return
		}
		b, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var j struct {
			N int64
			H string
		}
		if err := json.Unmarshal(b, &j); err != nil || j.N != int64(len(whole)) {
			t.Fatalf("%s: %v", b, err)
		}
		if want := h.Sum(nil); j.H != hexOf(want) {
			t.Fatalf("hash %s, hash/fnv returns %x", j.H, want)
		}
	})
	for _, bad := range []string{`{"n":1,"h":"zz"}`, `{"n":1,"h":"00"}`, `{"n":-1,"h":"00000000000000000000000000000000"}`, `[]`} {
		if json.Unmarshal([]byte(bad), new(digest)) == nil {
			t.Errorf("%s is accepted as a digest", bad)
		}
	}
}

func hexOf(b []byte) string {
	const digits = "0123456789abcdef"
	var s strings.Builder
	for _, c := range b {
		s.WriteByte(digits[c>>4])
		s.WriteByte(digits[c&15])
	}
	return s.String()
}

func TestTrimmed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tr trimmed
		var all string
		for _, p := range rapid.SliceOf(rapid.StringMatching(`[a \n\t]{0,4}`)).Draw(t, "parts") {
			tr.add(p)
			all += p
			if want := strings.TrimSpace(all); want != "" && !tr.is(want) {
				t.Fatalf("%q is not %q", all, want)
			}
			if tr.is("ab") {
				t.Fatal("is returns true for another text")
			}
		}
	})
}
