package dialect_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/sse"
	"pgregory.net/rapid"
)

// echo is a dialect in which every frame is a text; "end" ends the turn, and "bad" is invalid.
type echo struct {
	n     int
	ended bool
}

func (d *echo) Decode(f dialect.Frame) ([]event.Event, error) {
	d.n++
	switch s := string(f.Data); {
	case strings.Contains(s, "bad"):
		return nil, &dialect.Error{Dialect: "echo", Frame: d.n, Reason: "bad"}
	case s == `"end"`:
		d.ended = true
		return nil, nil
	default:
		return []event.Event{{Type: event.PartAppend, Message: f.Event, Text: s}}, nil
	}
}

func (d *echo) Close() ([]event.Event, error) {
	if !d.ended {
		return []event.Event{{Type: event.PartAppend, Text: "held"}}, dialect.ErrCutShort
	}
	return nil, nil
}

func (d *echo) State() ([]byte, error) { return fmt.Appendf(nil, "[%d,%v]", d.n, d.ended), nil }

func (d *echo) Restore(b []byte) error {
	_, err := fmt.Sscanf(string(b), "[%d,%t]", &d.n, &d.ended)
	return err
}

func echoDialect(f dialect.Framing) dialect.Dialect {
	return dialect.Dialect{Name: "echo", Framing: f, Decoder: func() dialect.Decoder { return &echo{} }}
}

func texts(ops []event.Event) (out []string) {
	for _, o := range ops {
		out = append(out, o.Message+o.Text)
	}
	return out
}

func TestStream(t *testing.T) {
	tests := []struct {
		name    string
		framing dialect.Framing
		body    string
		want    []string
		offset  int64 // before Close
		err     error
	}{
		{"lines", dialect.Lines, "1\n2\r\n\n  \n3\n\"end\"\n", []string{"1", "2", "3"}, -1, nil},
		{"a mark", dialect.Lines, "\xef\xbb\xbf1\n\"end\"\n", []string{"1"}, -1, nil},
		{"last line without its end", dialect.Lines, "1\n\"end\"", []string{"1"}, 2, nil},
		{"last line cut", dialect.Lines, "1\n\"en", []string{"1", "held"}, 2, dialect.ErrCutShort},
		{"no end", dialect.Lines, "1\n", []string{"1", "held"}, -1, dialect.ErrCutShort},
		{"empty", dialect.Lines, "", []string{"held"}, -1, dialect.ErrCutShort},
		{"events", dialect.SSE, "event: x\ndata: 1\n\ndata: \"end\"\n\n", []string{"x1"}, -1, nil},
		{"event without its end", dialect.SSE, "data: 1\n\ndata: \"end\"\n", []string{"1", "held"}, 9, dialect.ErrCutShort},
		{"heartbeats", dialect.SSE, "data: \"end\"\n\n: beat\n\n: beat\n\n", nil, -1, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for cut := range len(tt.body) + 1 {
				s := dialect.NewStream(echoDialect(tt.framing))
				var ops []event.Event
				for _, p := range []string{tt.body[:cut], tt.body[cut:]} {
					b := []byte(p)
					got, err := s.Write(b)
					if err != nil {
						t.Fatal(err)
					}
					clear(b)
					ops = append(ops, got...)
				}
				want := tt.offset
				if want < 0 {
					want = int64(len(tt.body))
				}
				if s.Offset() != want || string(s.Pending()) != tt.body[want:] {
					t.Fatalf("cut at %d: offset %d, pending %q; want %d", cut, s.Offset(), s.Pending(), want)
				}
				got, err := s.Close()
				if !errors.Is(err, tt.err) {
					t.Fatalf("cut at %d: Close: %v", cut, err)
				}
				if diff := cmp.Diff(tt.want, texts(append(ops, got...))); diff != "" {
					t.Fatalf("cut at %d: %s", cut, diff)
				}
				if got, err := s.Close(); len(got) > 0 || err != nil {
					t.Fatalf("second Close: %v, %v", got, err)
				}
				if _, err := s.Write([]byte("1\n")); err == nil {
					t.Fatal("a closed stream accepts bytes")
				}
			}
		})
	}
}

func TestStreamInvalid(t *testing.T) {
	for _, f := range []dialect.Framing{dialect.Lines, dialect.SSE} {
		s := dialect.NewStream(echoDialect(f))
		body, good := "1\n2\nbad\n3\n", int64(4)
		if f == dialect.SSE {
			body, good = "data: 1\n\ndata: 2\n\ndata: bad\n\ndata: 3\n\n", 18
		}
		ops, err := s.Write([]byte(body))
		var bad *dialect.Error
		if !errors.As(err, &bad) || bad.Frame != 3 {
			t.Errorf("Write: %v", err)
		}
		if diff := cmp.Diff([]string{"1", "2"}, texts(ops)); diff != "" {
			t.Error(diff)
		}
		if s.Offset() != good {
			t.Errorf("offset %d, want %d, before the bad frame", s.Offset(), good)
		}
		if _, again := s.Write([]byte("4\n")); !errors.As(again, &bad) {
			t.Errorf("Write after an error: %v", again)
		}
		ops, err = s.Close()
		if !errors.As(err, &bad) || !errors.Is(err, dialect.ErrCutShort) || len(ops) != 1 {
			t.Errorf("Close after an error: %v, %v", ops, err)
		}
	}
}

func TestStreamTooLong(t *testing.T) {
	s := dialect.NewStream(echoDialect(dialect.Lines))
	long := make([]byte, 8<<20)
	for i := range long {
		long[i] = ' '
	}
	var err error
	n := 0
	for ; err == nil && n < 10; n++ {
		_, err = s.Write(long)
	}
	if !errors.Is(err, dialect.ErrTooLong) || n != 5 {
		t.Errorf("after %d pieces of 8 MiB: %v", n, err)
	}
	s = dialect.NewStream(echoDialect(dialect.SSE))
	for err, n = nil, 0; err == nil && n < 10; n++ {
		_, err = s.Write(long)
	}
	if !errors.Is(err, sse.ErrTooLong) || n != 5 {
		t.Errorf("after %d pieces of 8 MiB: %v", n, err)
	}
}

func TestStreamRestoreRefuses(t *testing.T) {
	for _, bad := range []string{``, `[]`, `{"offset":-1,"decoder":[0,false]}`, `{"offset":1,"decoder":"x"}`} {
		if err := dialect.NewStream(echoDialect(dialect.Lines)).Restore([]byte(bad)); err == nil {
			t.Errorf("%s is accepted as a state", bad)
		}
	}
	s := dialect.NewStream(echoDialect(dialect.Lines))
	st, err := s.State()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write([]byte("1\n")); err != nil {
		t.Fatal(err)
	}
	if err := s.Restore(st); err == nil {
		t.Error("Restore of a used stream succeeds")
	}
}

// TestStreamResume drops the stream at every position and continues with a new one from its state and offset.
func TestStreamResume(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := echoDialect(rapid.SampledFrom([]dialect.Framing{dialect.Lines, dialect.SSE}).Draw(t, "framing"))
		body := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{
			"1", "22", "\n", "\n", "\r\n", "\r", "data: 1", "data:2", "event: e", ": c", "\xef\xbb\xbf", "id: 1", "\"end\"", "data: \"end\"", "\n\n",
		})).Draw(t, "body"), "")
		whole := dialect.NewStream(d)
		want, err := whole.Write([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		rest, wantErr := whole.Close()
		want = append(want, rest...)

		s := dialect.NewStream(d)
		var ops []event.Event
		for pos := 0; pos < len(body); {
			n := rapid.IntRange(1, len(body)-pos).Draw(t, "piece")
			got, err := s.Write([]byte(body[pos : pos+n]))
			if err != nil {
				t.Fatal(err)
			}
			pos += n
			ops = append(ops, got...)
			if body[s.Offset():pos] != string(s.Pending()) {
				t.Fatalf("at %d: offset %d, pending %q", pos, s.Offset(), s.Pending())
			}
			if !rapid.Bool().Draw(t, "drop") {
				continue
			}
			st, err := s.State()
			if err != nil {
				t.Fatal(err)
			}
			next := dialect.NewStream(d)
			if err := next.Restore(st); err != nil {
				t.Fatal(err)
			}
			if got, err := next.Write(s.Pending()); err != nil || len(got) > 0 {
				t.Fatalf("the pending bytes: %v, %v", got, err)
			}
			s = next
		}
		got, err := s.Close()
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("Close: %v, want %v", err, wantErr)
		}
		if !slices.Equal(texts(want), texts(append(ops, got...))) {
			t.Fatalf("got %q, want %q", texts(append(ops, got...)), texts(want))
		}
	})
}

func TestRegistry(t *testing.T) {
	r := dialect.NewRegistry(dialect.Dialect{Name: "b"}, dialect.Dialect{Name: "a"})
	if d, err := r.Lookup("a"); err != nil || d.Name != "a" {
		t.Errorf("%v, %v", d, err)
	}
	_, err := r.Lookup("c")
	if !errors.Is(err, dialect.ErrUnknown) || !strings.Contains(err.Error(), "a, b") || !strings.Contains(err.Error(), `"c"`) {
		t.Errorf("%v", err)
	}
	if _, err := (dialect.Registry{}).Lookup("a"); !errors.Is(err, dialect.ErrUnknown) {
		t.Errorf("%v", err)
	}
	if l := r.List(); len(l) != 2 || l[0].Name != "a" || l[1].Name != "b" {
		t.Errorf("%v", l)
	}
	defer func() {
		if recover() == nil {
			t.Error("two dialects with the same name are accepted")
		}
	}()
	dialect.NewRegistry(dialect.Dialect{Name: "a"}, dialect.Dialect{Name: "a"})
}

func TestUnknown(t *testing.T) {
	var u dialect.Unknown
	for i := range 200 {
		u.Add(fmt.Sprint(i))
		u.Add(strings.Repeat("x", 100))
	}
	n := 0
	for _, c := range u {
		n += c
	}
	if n != 400 || len(u) > 70 {
		t.Errorf("%d counted under %d names", n, len(u))
	}
}
