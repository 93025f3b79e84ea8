package transcript_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

var update = flag.Bool("update", false, "write testdata/readers.json anew")

// reading is a reader of readers.json, which testdata/README.md describes.
type reading struct {
	Name  string               `json:"name"`
	Steps []readingStep        `json:"steps"`
	Want  *transcript.Snapshot `json:"want"`
}

type readingStep struct {
	Snapshot *transcript.Snapshot `json:"snapshot,omitempty"`
	Events   []event.Event        `json:"events,omitempty"`
	Fault    string               `json:"fault,omitempty"`
}

// readings are what readers.json holds, for the fold of each client: what this package makes of logs that come merged, in
// pieces, again, out of place, and with checksums of other texts.
func readings(t *testing.T) (all []reading) {
	for i, v := range vectors(t) {
		log := v.Steps[0].Events
		if !strings.HasSuffix(v.Name, "/log") || slices.ContainsFunc(log, func(e event.Event) bool { return e.Type == event.ConversationTruncate }) {
			continue
		}
		for round := range uint64(3) {
			all = append(all, read(t, fmt.Sprint(v.Name, " ", round), log, rand.New(rand.NewPCG(uint64(i), round))))
		}
	}
	return all
}

// read has a reader follow a log, with accidents.
func read(t *testing.T, name string, log []event.Event, r *rand.Rand) reading {
	t.Helper()
	out := reading{Name: name}
	var tr transcript.Transcript
	apply := func(events []event.Event) bool {
		s := readingStep{Events: events}
		for i := range events {
			switch err := tr.Apply(&events[i]); {
			case errors.Is(err, transcript.ErrGap):
				s.Fault = "gap"
			case errors.Is(err, transcript.ErrMismatch):
				s.Fault = "mismatch"
			case err != nil:
				t.Fatal(err)
			}
			if s.Fault != "" {
				s.Events = events[:i+1]
				break
			}
		}
		out.Steps = append(out.Steps, s)
		return s.Fault == ""
	}
	whole := fold(t, log)
	n := 1 + r.IntN(len(log))
	for at := 0; at < n; {
		upto := min(n, at+1+r.IntN(12))
		batch := transcript.SplitText(transcript.Merge(log[at:upto], history(whole)), 6)
		switch r.IntN(5) {
		case 0: // cut, and from the old cursor again
			apply(batch[:1+r.IntN(len(batch))])
		case 1:
			s := fold(t, log[:upto]).Snapshot(0)
			tr.Reset(s)
			out.Steps = append(out.Steps, readingStep{Snapshot: s})
			at = upto
		default:
			if !apply(batch) {
				t.Fatalf("%s: a batch of a sound log does not apply", name)
			}
			at = upto
		}
	}
	for range 12 { // events out of place
		e := log[r.IntN(len(log))]
		if r.IntN(2) == 0 {
			e.Seq = int64(1 + r.IntN(2*len(log)))
		}
		if m := tr.Message(e.Message); m != nil && r.IntN(3) == 0 && len(m.Parts) > 0 {
			p := m.Parts[r.IntN(len(m.Parts))]
			sum := p.Sum(event.Text)
			sum.CRC ^= uint32(r.IntN(2))
			e = event.Event{Seq: int64(len(log) + 1 + r.IntN(9)), At: 9, Turn: m.Turn, Message: m.ID, Part: p.ID, Type: event.PartEnd, Body: &event.Body{Sums: map[string]event.Sum{"text": sum}}}
		}
		before := tr.Snapshot(0)
		steps := len(out.Steps)
		if !apply([]event.Event{e}) {
			break
		}
		if m := tr.Message(e.Message); m != nil && m.Part(e.Part) != nil && !utf8.ValidString(m.Part(e.Part).Text(e.Field)) {
			// An offset inside a character, which only a broken gateway sends, and which not every language can hold.
			tr.Reset(before)
			out.Steps = append(out.Steps[:steps], readingStep{Snapshot: before})
		}
	}
	out.Want = tr.Snapshot(0)
	return out
}

// The file is what this package makes of its readers, so that a client that agrees with it agrees with the gateway.
func TestReaders(t *testing.T) {
	const path = "testdata/readers.json"
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	all := readings(t)
	faults := map[string]int{}
	for _, r := range all {
		faults[r.Steps[len(r.Steps)-1].Fault]++
		if err := enc.Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	if len(all) < 30 || faults["gap"] == 0 || faults["mismatch"] < 5 || faults[""] == 0 {
		t.Fatalf("%d readers, with these ends: %v", len(all), faults)
	}
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, b.Bytes()) {
		t.Errorf("%s is not what the readers come to; see what has changed in the fold, and write it with go test ./transcript -run Readers -update", path)
	}
}
