package recording

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// write returns the recording that use writes.
func write(t *testing.T, use func(w *Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := use(&Writer{Output: &b, Client: "A"}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The division of a body into pieces doesn't change its frames.
func TestPieces(t *testing.T) {
	for name, tt := range map[string]struct {
		body string
		want []string
	}{
		"events":      {"event: x\ndata: ä\n\n: c\n\ndata: b\n\ndata: cut", []string{" x ä", "  b"}},
		"lines":       {"{\"a\":1}\n\n{\"ä\":2}\r\n{\"last\":3}", []string{`  {"a":1}`, `  {"ä":2}`, `  {"last":3}`}},
		"a cut line":  {"{\"a\":1}\n{\"b\":", []string{`  {"a":1}`}},
		"white first": {"\xef\xbb\xbf \r\ndata: a\n\n", []string{"  a"}},
	} {
		for first := range len(tt.body) + 1 {
			for _, second := range []int{first, (first + len(tt.body)) / 2, len(tt.body)} {
				in := write(t, func(w *Writer) error {
					err := errors.Join(w.Open(1, Head{Dialect: "d"}), w.Piece(2, true, []byte("data: sent\n\n")))
					for i, piece := range []string{tt.body[:first], tt.body[first:second], tt.body[second:]} {
						err = errors.Join(err, w.Piece(int64(i), false, []byte(piece)))
					}
					return errors.Join(err, w.Close(4))
				})
				got, r, err := read(bytes.NewReader(in), "")
				if err != nil {
					t.Fatalf("%s, %d, %d: %v\n%s", name, first, second, err, in)
				}
				for i := range got {
					got[i] = got[i][1:] // the time is that of the piece that completed it
				}
				if d := cmp.Diff(tt.want, got); d != "" {
					t.Fatalf("%s, %d, %d: %s\n%s", name, first, second, d, in)
				}
				if r.Head().Dialect != "d" || r.form != formRecorder {
					t.Errorf("head %+v, form %s", r.Head(), r.form)
				}
			}
		}
	}
}

func TestWriter(t *testing.T) {
	in := write(t, func(w *Writer) error {
		return errors.Join(
			w.Open(1, Head{Turn: "t", Agent: "a"}),
			w.Message(2, true, []byte(`{"hello":1}`)),
			w.Message(3, false, []byte(`{"n":"<1>"}`)),
			w.Message(4, false, []byte("plain")),
			w.Gap(5, 77),
			w.Open(6, Head{Turn: "t", Dialect: "d"}),
			w.Piece(7, false, []byte("data: half")),
			w.Open(8, Head{}), // another attempt
			w.Piece(9, false, []byte("data: \xff")),
			w.Piece(10, false, []byte("\n\n")),
			w.Close(11),
			w.Message(12, false, []byte(`{"late":1}`)),
		)
	})
	got, r, err := read(bytes.NewReader(in), "A")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{`3  {"n":"<1>"}`, "4  plain", "10  \xff"}, got); d != "" {
		t.Errorf("%s\n%s", d, in)
	}
	if d := cmp.Diff(Head{Turn: "t", Dialect: "d"}, r.Head()); d != "" {
		t.Error(d)
	}
}
