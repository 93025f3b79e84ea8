package sse

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// got is an event with a copy of its data.
type got struct{ Name, ID, Data string }

// read feeds the pieces and returns the events, the offset after each, and the error of Feed or Close.
func read(r *Reader, pieces ...string) (events []got, offsets []int64, err error) {
	for _, p := range pieces {
		b := []byte(p)
		err = r.Feed(b, func(e Event) error {
			events = append(events, got{e.Name, e.ID, string(e.Data)})
			offsets = append(offsets, r.Offset())
			return nil
		})
		clear(b) // the reader must not look at a piece again
		if err != nil {
			return events, offsets, err
		}
	}
	return events, offsets, r.Close()
}

func TestReader(t *testing.T) {
	tests := []struct {
		name, in string
		want     []got
		err      error
	}{
		{"empty", "", nil, nil},
		{"one", "data: a\n\n", []got{{"", "", "a"}}, nil},
		{"named", "event: x\ndata: a\n\n", []got{{"x", "", "a"}}, nil},
		{"the name does not last", "event: x\ndata: a\n\ndata: b\n\n", []got{{"x", "", "a"}, {"", "", "b"}}, nil},
		{"crlf", "event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", []got{{"x", "", "a"}, {"", "", "b"}}, nil},
		{"cr", "event: x\rdata: a\r\rdata: b\r\r", []got{{"x", "", "a"}, {"", "", "b"}}, nil},
		{"mixed line ends", "data: a\r\ndata: b\rdata: c\n\r\n", []got{{"", "", "a\nb\nc"}}, nil},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []got{{"", "", "a"}}, nil},
		{"a second mark is content", "\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", []got{{"", "", "b"}}, nil},
		{"a mark later is content", "data: a\n\n\xef\xbb\xbfdata: b\n\ndata: c\n\n", []got{{"", "", "a"}, {"", "", "c"}}, nil},
		{"comments", ": hi\n\n:\n\ndata: a\n: in between\ndata: b\n\n", []got{{"", "", "a\nb"}}, nil},
		{"no space after the colon", "event:x\ndata:a\n\n", []got{{"x", "", "a"}}, nil},
		{"one space is dropped", "data:  a\n\n", []got{{"", "", " a"}}, nil},
		{"no colon", "data\n\n", []got{{"", "", ""}}, nil},
		{"empty data", "data:\n\n", []got{{"", "", ""}}, nil},
		{"two empty lines of data", "data\ndata\n\n", []got{{"", "", "\n"}}, nil},
		{"no data, no event", "event: x\nid: 7\n\ndata: a\n\n", []got{{"", "", "a"}}, nil},
		{"id", "id: 7\ndata: a\n\ndata: b\n\n", []got{{"", "7", "a"}, {"", "", "b"}}, nil},
		{"id with NUL is ignored", "id: 7\x008\ndata: a\n\n", []got{{"", "", "a"}}, nil},
		{"unknown field", "foo: bar\ndata: a\n\n", []got{{"", "", "a"}}, nil},
		{"field names are exact", "Data: a\n data: b\n\ndata: c\n\n", []got{{"", "", "c"}}, nil},
		{"colons in the value", "data: a:b: c\n\n", []got{{"", "", "a:b: c"}}, nil},
		{"blank lines", "\n\n\r\n\rdata: a\n\n\n\n", []got{{"", "", "a"}}, nil},
		{"unended event", "data: a\n\ndata: b\n", []got{{"", "", "a"}}, ErrInsideEvent},
		{"unended line", "data: a\n\ndat", []got{{"", "", "a"}}, ErrInsideEvent},
		{"unended after a name", "event: x\n", nil, ErrInsideEvent},
		{"unended comment", "data: a\n\n: hea", []got{{"", "", "a"}}, nil},
		{"only a mark", "\xef\xbb\xbf", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			events, _, err := read(&Reader{}, tt.in)
			if diff := cmp.Diff(tt.want, events); diff != "" {
				t.Error(diff)
			}
			if !errors.Is(err, tt.err) {
				t.Errorf("Close: %v, want %v", err, tt.err)
			}
			for cut := 1; cut < len(tt.in); cut++ {
				events, _, err := read(&Reader{}, tt.in[:cut], tt.in[cut:])
				if diff := cmp.Diff(tt.want, events); diff != "" || !errors.Is(err, tt.err) {
					t.Errorf("cut at %d: %v\n%s", cut, err, diff)
				}
			}
		})
	}
}

func TestReaderHints(t *testing.T) {
	r := &Reader{}
	if _, ok := r.Retry(); ok || r.LastID() != "" {
		t.Error("a new reader has hints")
	}
	if _, _, err := read(r, "retry: 1500\n\nid: a\n\nretry: x1\n\nretry: 99999999999999999999\n\nid: b\x00\n\n"); err != nil {
		t.Fatal(err)
	}
	if d, ok := r.Retry(); !ok || d != 1500*time.Millisecond {
		t.Errorf("Retry: %v, %v", d, ok)
	}
	if r.LastID() != "a" {
		t.Errorf("LastID: %q", r.LastID())
	}
}

func TestReaderOffset(t *testing.T) {
	const in = "data: a\n\n: beat\n\ndata: b\r\n\r\ndata: c\r\rdata: d\n"
	_, offsets, _ := read(&Reader{}, in)
	// If the piece has the LF after the CR that ends an event, the event ends after the LF.
	if diff := cmp.Diff([]int64{9, 28, 37}, offsets); diff != "" {
		t.Error(diff)
	}
	r := &Reader{}
	if _, _, err := read(r, in[:27], in[27:28]); err != nil {
		t.Fatal(err)
	}
	if r.Offset() != 28 {
		t.Errorf("Offset is %d after the late LF", r.Offset())
	}
}

func TestReaderLimit(t *testing.T) {
	long := "data: " + strings.Repeat("x", 94) // 100 bytes
	tests := []struct {
		name, in string
		ok       bool
	}{
		{"line at the limit", long + "\n\n", true},
		{"line above it", long + "x\n\n", false},
		{"unended line above it", long + "x", false},
		{"event at the limit", "data: " + strings.Repeat("x", 50) + "\ndata: " + strings.Repeat("x", 49) + "\n\n", true},
		{"event above it", "data: " + strings.Repeat("x", 50) + "\ndata: " + strings.Repeat("x", 50) + "\n\n", false},
		{"a comment counts as well", ":" + strings.Repeat("x", 100), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for cut := range len(tt.in) {
				r := &Reader{Limit: 100}
				_, _, err := read(r, tt.in[:cut], tt.in[cut:])
				if tt.ok != (err == nil) || (!tt.ok && !errors.Is(err, ErrTooLong)) {
					t.Fatalf("cut at %d: %v", cut, err)
				}
				if !tt.ok && !errors.Is(r.Feed([]byte("data: a\n\n"), nil), ErrTooLong) {
					t.Fatal("Feed after an error succeeds")
				}
			}
		})
	}
}

func TestReaderStops(t *testing.T) {
	stop := errors.New("stop")
	r := &Reader{}
	n := 0
	err := r.Feed([]byte("data: a\n\ndata: b\n\n"), func(Event) error { n++; return stop })
	if !errors.Is(err, stop) || n != 1 {
		t.Errorf("Feed: %v after %d events", err, n)
	}
	if err := r.Close(); !errors.Is(err, stop) {
		t.Errorf("Close: %v", err)
	}
	r = &Reader{}
	if err := errors.Join(r.Close(), r.Close()); err != nil {
		t.Error(err)
	}
	if err := r.Feed([]byte("data: a\n\n"), nil); err == nil {
		t.Error("a closed reader accepts bytes")
	}
}

func TestWriterRefuses(t *testing.T) {
	for _, bad := range []string{"a\nb", "a\rb", "a\x00b"} {
		for _, f := range [][2]string{{bad, ""}, {"", bad}} {
			b, err := AppendEvent([]byte("x"), f[0], f[1], nil)
			if !errors.Is(err, ErrField) || string(b) != "x" {
				t.Errorf("%q: %q, %v", f, b, err)
			}
		}
	}
}

func TestWriterBytes(t *testing.T) {
	b, err := AppendEvent(nil, "7", "x", []byte("a\r\nb\rc\n"))
	if err != nil {
		t.Fatal(err)
	}
	b = AppendRetry(AppendComment(b, "beat"), 2*time.Second)
	const want = "id: 7\nevent: x\ndata: a\ndata: b\ndata: c\ndata: \n\n: beat\n\nretry: 2000\n\n"
	if string(b) != want {
		t.Errorf("got %q, want %q", b, want)
	}
}

// stream generates bytes that are often the parts of a stream.
func stream(t *rapid.T) string {
	return strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{
		"\n", "\r", "\r\n", "\n\n", "data: a", "data:", "data: b c", "event: x", "id: 1", "id", ": c", "\xef\xbb\xbf", "retry: 5", "é", " ", ":", "x",
	})).Draw(t, "stream"), "")
}

func TestReaderChunking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkChunks(t, stream(t), rapid.SliceOf(rapid.IntRange(1, 9)).Draw(t, "chunks")) })
}

// fataler is the part of testing.TB and rapid.T that the checks use.
type fataler interface{ Fatalf(string, ...any) }

func checkChunks(t fataler, in string, chunks []int) {
	whole := &Reader{}
	want, offsets, wantErr := read(whole, in)
	var pieces []string
	rest := in
	for _, n := range chunks {
		n = min(n, len(rest))
		pieces, rest = append(pieces, rest[:n]), rest[n:]
	}
	cut := &Reader{}
	events, _, err := read(cut, append(pieces, rest)...)
	if diff := cmp.Diff(want, events); diff != "" {
		t.Fatalf("%q in %v: %s", in, chunks, diff)
	}
	if !errors.Is(err, wantErr) || cut.Offset() != whole.Offset() || cut.LastID() != whole.LastID() {
		t.Fatalf("%q in %v: %v, want %v; offset %d, want %d", in, chunks, err, wantErr, cut.Offset(), whole.Offset())
	}
	for i, o := range offsets {
		events, _, err := read(&Reader{MidStream: true}, in[o:])
		if diff := cmp.Diff(want[i+1:], events, equateEmpty); diff != "" || !errors.Is(err, wantErr) {
			t.Fatalf("%q resumed at %d: %v, want %v\n%s", in, o, err, wantErr, diff)
		}
	}
}

var equateEmpty = cmp.Transformer("empty", func(g []got) string { return fmt.Sprintf("%q", g) })

func FuzzReader(f *testing.F) {
	f.Add([]byte("event: x\r\ndata: a\r\n\r\ndata: b\n\n"), []byte{1, 2, 3})
	f.Add([]byte("\xef\xbb\xbfdata\rdata\r\rid: \x00\n\n: c\n"), []byte{1, 1, 1, 1})
	f.Fuzz(func(t *testing.T, in, cuts []byte) {
		chunks := make([]int, len(cuts))
		for i, c := range cuts {
			chunks[i] = int(c)
		}
		checkChunks(t, string(in), chunks)
	})
}

func FuzzRoundTrip(f *testing.F) {
	f.Add("1", "x", []byte("a\r\nb"))
	f.Fuzz(func(t *testing.T, id, name string, data []byte) {
		b, err := AppendEvent(nil, id, name, data)
		if err != nil {
			return
		}
		want := bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
		events, _, err := read(&Reader{}, string(AppendComment(b, string(data))))
		if err != nil || len(events) != 1 || events[0] != (got{name, id, string(want)}) {
			t.Fatalf("%q %q %q: %q, %v", id, name, data, events, err)
		}
	})
}

func BenchmarkReader(b *testing.B) {
	ev, err := AppendEvent(nil, "", "content_block_delta", []byte(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`))
	if err != nil {
		b.Fatal(err)
	}
	piece := bytes.Repeat(ev, 16)
	b.SetBytes(int64(len(ev)))
	b.ReportAllocs()
	r := &Reader{}
	n := 0
	for i := 0; i < b.N; i += 16 {
		if err := r.Feed(piece, func(Event) error { n++; return nil }); err != nil {
			b.Fatal(err)
		}
	}
	if n < b.N {
		b.Fatalf("%d events of %d", n, b.N)
	}
}
