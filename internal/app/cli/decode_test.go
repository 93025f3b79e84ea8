package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// leat runs a command line in this process and returns its exit status and outputs.
func leatHere(stdin string, args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	a := &app{ctx: context.Background(), in: strings.NewReader(stdin), stdout: &out, stderr: &errs, lookup: func(string) (string, bool) { return "", false }}
	status = a.run(args)
	return status, out.String(), errs.String()
}

func transcriptSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	for _, name := range []string{"protocol.schema.json", "transcript.schema.json"} {
		f, err := os.Open(filepath.Join("../../../docs", name))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(f)
		f.Close()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := c.AddResource("https://leat.dev/"+name, doc); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	s, err := c.Compile("https://leat.dev/transcript.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Every recording can be decoded: the document matches the schema, the events fold to the document's messages, and the text output is
// the text of these messages.
func TestDecodeRecordings(t *testing.T) {
	schema := transcriptSchema(t)
	root := "../../../dialect/openclaw/testdata"
	count := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".jsonl" {
			return err
		}
		count++
		t.Run(filepath.ToSlash(path[len(root)+1:]), func(t *testing.T) {
			status, doc, errs := leatHere("", "decode", "-d", "openclaw", "--as", "transcript", path)
			if status != 0 && (status != exitCut || !strings.Contains(errs, "cut short")) {
				t.Fatalf("status %d: %s", status, errs)
			}
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(doc))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(v); err != nil {
				t.Fatal(err)
			}
			var got struct {
				CutShort bool
				Turns    []*transcript.Turn
				Messages []*transcript.Message
			}
			if err := json.Unmarshal([]byte(doc), &got); err != nil {
				t.Fatal(err)
			}
			if got.CutShort != (status == exitCut) {
				t.Errorf("status %d, cutShort %v", status, got.CutShort)
			}
			for _, turn := range got.Turns {
				if turn.Unfinished() && !got.CutShort {
					t.Errorf("turn %s has not ended, although the stream is complete", turn.ID)
				}
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, events, _ := leatHere(string(raw), "decode", "-d", "openclaw", "--as", "events")
			var fold transcript.Transcript
			for line := range strings.Lines(events) {
				var e event.Event
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					t.Fatal(err)
				}
				if err := e.Validate(); err != nil {
					t.Fatal(err)
				}
				if err := fold.Apply(&e); err != nil {
					t.Fatal(err)
				}
			}
			if len(fold.Messages) != len(got.Messages) || len(fold.Turns) != len(got.Turns) {
				t.Fatalf("the events fold to %d messages and %d turns, the document has %d and %d", len(fold.Messages), len(fold.Turns), len(got.Messages), len(got.Turns))
			}
			var texts []string
			for i, m := range got.Messages {
				if m.Visible() != fold.Messages[i].Visible() {
					t.Errorf("message %d is %q by events, %q in the document", i, fold.Messages[i].Visible(), m.Visible())
				}
				if v := m.Visible(); m.Role == event.Assistant && v != "" {
					texts = append(texts, v)
				}
			}
			_, text, _ := leatHere(string(raw), "decode", "-d", "openclaw")
			if want := strings.Join(texts, "\n\n"); strings.TrimSuffix(text, "\n") != want {
				t.Errorf("text %q, want %q", text, want)
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if count < 20 {
		t.Fatalf("only %d recordings were found", count)
	}
}

// Recordings that may not be copied into the project are decoded too, if they are next to the repository.
func TestDecodeForeignRecordings(t *testing.T) {
	all, err := filepath.Glob("../../../../shared/recordings/anthropic/*")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Skip("SKIPPED: the recordings outside the project are missing; put them next to the repository")
	}
	schema := transcriptSchema(t)
	for _, path := range all {
		t.Run(filepath.Base(path), func(t *testing.T) {
			status, doc, errs := leatHere("", "decode", "-d", "anthropic", "--as", "transcript", path)
			if status != 0 {
				t.Fatalf("status %d: %s", status, errs)
			}
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(doc))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(v); err != nil {
				t.Error(err)
			}
		})
	}
}

// Text that a decoder has buffered is printed even if the stream is damaged after it.
func TestDecodeBroken(t *testing.T) {
	// The next callback may replace the text, so the decoder buffers it until the next frame.
	const in = `{"type":"callback","text":"Now playing"}` + "\n" + `{"type":"chunk","text":"Now play"}` + "\n" + "{broken\n"
	status, stdout, stderr := leatHere(in, "decode", "--dialect", "eliza-actions")
	if status != 1 || !strings.Contains(stdout, "Now playing\n\nNow play\n") || !strings.Contains(stderr, "frame 3") {
		t.Errorf("status %d, %q, %q", status, stdout, stderr)
	}
}

func TestDecodeSaysThatThereAreOthers(t *testing.T) {
	const in = `{"t":1,"c":"a","dir":"in","frame":{"type":"chunk","text":"hello"}}` + "\n" +
		`{"t":2,"c":"b","dir":"in","frame":{"type":"chunk","text":"bye"}}` + "\n" +
		`{"t":3,"c":"a","dir":"in","frame":{"type":"done"}}` + "\n"
	status, stdout, stderr := leatHere(in, "decode", "--dialect", "eliza-actions")
	if status != 0 || stdout != "hello\n" || !strings.Contains(stderr, "decoded connection a of 2; use --client for another: a, b") {
		t.Errorf("status %d, %q, %q", status, stdout, stderr)
	}
}
