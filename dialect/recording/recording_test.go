package recording

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// read returns the frames as "time event data", and the error after the last one unless it is io.EOF.
func read(in io.Reader, client string) (frames []string, r *Reader, err error) {
	if r, err = NewReader(in, client); err != nil {
		return nil, nil, err
	}
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			return frames, r, nil
		}
		if err != nil {
			return frames, r, err
		}
		frames = append(frames, fmt.Sprintf("%d %s %s", f.At, f.Event, f.Data))
	}
}

const recorder = `{"t":1000,"c":"A","dir":"out","frame":{"hello":1}}
{"t":1001,"c":"B","dir":"error","frame":"refused"}
{"t":1001,"c":"B","dir":"close","frame":{"code":1006}}
{"t":1002.7,"c":"A","dir":"in","frame":{"n": 1}}
{"t":1003,"c":"B","dir":"in","frame":{"n":2}}

{"t":1004,"c":"A","dir":"in","frame":"plain \"text\""}
{"t":1005,"c":"A","dir":"close","frame":{"code":1005}}
{"t":1006,"c":"A","dir":"in","frame":{"n":3}}
{"t":1007,"c":"B","dir":"in","frame":{"n":4}}
{"t":1008,"c":7,"dir":"in","frame":{"n":5}}
`

func TestReader(t *testing.T) {
	tests := []struct {
		name, in, client string
		form             form
		want             []string
	}{
		{"events", "event: x\r\ndata: a\r\n\r\n: c\r\n\r\ndata: b\r\n\r\n", "", formSSE, []string{"0 x a", "0  b"}},
		{"events from a comment on", ": hi\n\ndata: a\n\n", "", formSSE, []string{"0  a"}},
		{"events after a mark", "\xef\xbb\xbfdata: a\n\n", "", formSSE, []string{"0  a"}},
		{"events, the last one cut", "data: a\n\ndata: b\n", "", formSSE, []string{"0  a"}},
		{"blank lines first", "\n \r\n" + "data: a\n\n", "", formSSE, []string{"0  a"}},
		{"lines", `{"a":1}` + "\n\n" + `{"b":2}` + "\r\n" + `[3]`, "", formLines, []string{`0  {"a":1}`, `0  {"b":2}`, `0  [3]`}},
		{"lines, the last one cut", `{"a":1}` + "\n" + `{"b":`, "", formLines, []string{`0  {"a":1}`}},
		{"lines with a time", `{"t":5,"text":"x"}` + "\n", "", formLines, []string{`0  {"t":5,"text":"x"}`}},
		{"first client", recorder, "", formRecorder, []string{`1002  {"n": 1}`, `1004  plain "text"`}},
		{"client that was refused first", recorder, "B", formRecorder, []string{`1003  {"n":2}`, `1007  {"n":4}`}},
		{"client with a number", recorder, "7", formRecorder, []string{`1008  {"n":5}`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, in := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in)), iotest.DataErrReader(strings.NewReader(tt.in))} {
				got, r, err := read(in, tt.client)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
				if r.form != tt.form {
					t.Errorf("form %s", r.form)
				}
				if tt.form == formRecorder {
					if diff := cmp.Diff([]string{"A", "B", "7"}, r.Clients()); diff != "" {
						t.Error(diff)
					}
				}
			}
		})
	}
}

func TestReaderErrors(t *testing.T) {
	broken := errors.New("broken")
	tests := []struct {
		name   string
		in     io.Reader
		client string
		want   error
		text   string
	}{
		{"empty", strings.NewReader(" \n"), "", io.EOF, ""},
		{"no form", strings.NewReader("hello"), "", errForm, `"hello"`},
		{"an array", strings.NewReader("[{}]"), "", errForm, ""},
		{"a client in a form without clients", strings.NewReader("{}\n"), "A", errClient, "lines"},
		{"an unknown client", strings.NewReader(recorder), "C", errClient, `"A" "B"`},
		{"a broken line", strings.NewReader(recorder + "{\n" + recorder), "", nil, "line 12"},
		{"a broken reader", iotest.ErrReader(broken), "", broken, ""},
		{"a reader that breaks in lines", io.MultiReader(strings.NewReader("{}\n{"), iotest.ErrReader(broken)), "", broken, ""},
		{"a reader that breaks in events", io.MultiReader(strings.NewReader("data: a\n\nda"), iotest.ErrReader(broken)), "", broken, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := read(tt.in, tt.client)
			if err == nil || (tt.want != nil && !errors.Is(err, tt.want)) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("error %v, want %v with %s", err, tt.want, tt.text)
			}
		})
	}
}

// zeros is an endless line.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

func TestReaderLimit(t *testing.T) {
	_, _, err := read(io.MultiReader(strings.NewReader("{}\n{"), zeros{}), "")
	if !errors.Is(err, errTooLong) {
		t.Errorf("error %v", err)
	}
	_, _, err = read(io.MultiReader(strings.NewReader("data: "), zeros{}), "")
	if err == nil || errors.Is(err, io.EOF) {
		t.Errorf("error %v", err)
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(recorder), "A")
	f.Add([]byte("event: x\ndata: a\n\n"), "")
	f.Add([]byte("{}\n[]"), "")
	f.Fuzz(func(t *testing.T, in []byte, client string) {
		whole, _, err := read(bytes.NewReader(in), client)
		cut, _, cutErr := read(iotest.OneByteReader(bytes.NewReader(in)), client)
		if !slices.Equal(whole, cut) || (err == nil) != (cutErr == nil) {
			t.Fatalf("%q: %q, %v; byte by byte %q, %v", in, whole, err, cut, cutErr)
		}
	})
}
