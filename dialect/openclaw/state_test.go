package openclaw

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// operations decodes frames. If restart is true, a new decoder with the old one's state takes over before each frame.
func operations(t testing.TB, frames [][]byte, restart func(i int) bool) ([]event.Event, error) {
	t.Helper()
	d := Dialect().Decoder()
	var all []event.Event
	for i, b := range frames {
		if restart(i) {
			state, err := d.State()
			if err != nil {
				t.Fatal(err)
			}
			d = Dialect().Decoder()
			if err := d.Restore(state); err != nil {
				t.Fatal(err)
			}
		}
		ops, err := d.Decode(dialect.Frame{Data: b})
		if err != nil {
			t.Fatalf("frame %d: %v", i+1, err)
		}
		all = append(all, ops...)
	}
	ops, err := d.Close()
	return append(all, ops...), err
}

func never(int) bool  { return false }
func always(int) bool { return true }

func TestRestore(t *testing.T) {
	for _, rec := range recordings {
		t.Run(rec.version+"/"+rec.name+rec.client, func(t *testing.T) {
			in := frames(t, rec.version, rec.name, rec.client)
			want, wantErr := operations(t, in, never)
			got, err := operations(t, in, always)
			if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, wantErr) {
				t.Errorf("restored at every frame: %v, operations (-want +got):\n%s", err, diff)
			}
		})
	}
}

// A run continues over a second connection, whose decoder is restored from the first one's state.
func TestReconnect(t *testing.T) {
	f := newFolder(t)
	first := Dialect().Decoder()
	f.decode(first, frames(t, "2026.9.6", "reconnect", "A"))
	state, err := first.State()
	if err != nil {
		t.Fatal(err)
	}
	second := Dialect().Decoder()
	if err := second.Restore(state); err != nil {
		t.Fatal(err)
	}
	replaced := false
	f.each = func(_ *transcript.Transcript, e *event.Event) { replaced = replaced || e.Type == event.PartReplace }
	f.decode(second, frames(t, "2026.9.6", "reconnect", "B"))
	if _, err := second.Close(); err != nil {
		t.Error(err)
	}
	turn := f.Tr.Turns[0]
	if got := f.Tr.Visible(turn.ID); got != foxes(12) || replaced || len(f.Tr.Turns) != 1 || turn.Outcome != event.Completed {
		t.Errorf("replaced %v, %d turns, %s, visible %q", replaced, len(f.Tr.Turns), turn.Outcome, got)
	}
}

// The state is stored with every commit, so it must not grow with the texts.
func TestStateIsSmall(t *testing.T) {
	for _, rec := range recordings {
		d := Dialect().Decoder()
		for _, b := range frames(t, rec.version, rec.name, rec.client) {
			if _, err := d.Decode(dialect.Frame{Data: b}); err != nil {
				t.Fatal(err)
			}
			state, err := d.State()
			if err != nil {
				t.Fatal(err)
			}
			if len(state) > 2048 || strings.Contains(string(state), "quick brown fox") {
				t.Fatalf("%s/%s: state of %d bytes: %s", rec.version, rec.name, len(state), state)
			}
		}
	}
}

// The events don't depend on how the bytes are split, nor on a restore in between.
func TestChunks(t *testing.T) {
	for _, rec := range recordings {
		t.Run(rec.version+"/"+rec.name+rec.client, func(t *testing.T) {
			in := frames(t, rec.version, rec.name, rec.client)
			want, wantErr := operations(t, in, never)
			body := append(bytes.Join(in, []byte("\n")), '\n')
			check := func(got []event.Event, err error) {
				t.Helper()
				if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, wantErr) {
					t.Fatalf("%v, operations (-want +got):\n%s", err, diff)
				}
			}
			rng := rand.New(rand.NewPCG(1, 2))
			for _, limit := range []int{1, 17, 1000} {
				if limit == 1 && len(body) > 100_000 {
					continue
				}
				s := dialect.NewStream(Dialect())
				var got []event.Event
				for rest := body; len(rest) > 0; {
					n := min(1+rng.IntN(limit), len(rest))
					ops, err := s.Write(rest[:n])
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, ops...)
					rest = rest[n:]
					if rng.IntN(1+40_000/limit) == 0 { // seldom enough for the longest frame to get through
						s, rest = takeUp(t, s, body)
					}
				}
				ops, err := s.Close()
				check(append(got, ops...), err)
			}
		})
	}
}

func takeUp(t *testing.T, s *dialect.Stream, body []byte) (*dialect.Stream, []byte) {
	t.Helper()
	state, err := s.State()
	if err != nil {
		t.Fatal(err)
	}
	next := dialect.NewStream(Dialect())
	if err := next.Restore(state); err != nil {
		t.Fatal(err)
	}
	return next, body[s.Offset():]
}

// A stream that ends before the run's end is reported as interrupted, and none of its events ends the run.
func TestCutShort(t *testing.T) {
	for _, rec := range recordings {
		in := frames(t, rec.version, rec.name, rec.client)
		ended := false
		d := Dialect().Decoder()
		for n := 0; !ended && n <= len(in); n++ {
			if n > 0 {
				ops, err := d.Decode(dialect.Frame{Data: in[n-1]})
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range ops {
					ended = ended || e.Type == event.TurnEnd && e.Turn == firstRun(t, in)
				}
			}
			if ended || n%7 != 0 && n != len(in) {
				continue
			}
			ops, err := operations(t, in[:n], never)
			if !errors.Is(err, dialect.ErrCutShort) {
				t.Errorf("%s/%s cut behind frame %d: %v", rec.version, rec.name, n, err)
			}
			for _, e := range ops {
				if e.Type == event.TurnEnd && e.Turn == firstRun(t, in) {
					t.Errorf("%s/%s cut behind frame %d ends with %+v", rec.version, rec.name, n, e.Body)
				}
			}
		}
		if ended == rec.cut {
			t.Errorf("%s/%s%s: ended %v", rec.version, rec.name, rec.client, ended)
		}
	}
}

func firstRun(t testing.TB, in [][]byte) string {
	t.Helper()
	for _, b := range in {
		var f struct{ Payload struct{ RunID string } }
		if err := json.Unmarshal(b, &f); err != nil {
			t.Fatal(err)
		}
		if f.Payload.RunID != "" {
			return f.Payload.RunID
		}
	}
	return ""
}

func TestAfterTheEnd(t *testing.T) {
	in := frames(t, "2026.9.6", "multi", "")
	d := Dialect().Decoder()
	newFolder(t).decode(d, in)
	for _, again := range []func() error{func() error { return nil }, func() error { _, err := d.Close(); return err }} {
		if err := again(); err != nil {
			t.Fatal(err)
		}
		for i, b := range in {
			if ops, err := d.Decode(dialect.Frame{Data: b}); err != nil || len(ops) > 0 {
				t.Fatalf("frame %d again: %v, %v", i+1, ops, err)
			}
		}
	}
	if ops, err := d.Close(); err != nil || len(ops) > 0 {
		t.Errorf("second Close: %v, %v", ops, err)
	}
}

func TestClose(t *testing.T) {
	s := ready("s")
	f, err := play(t, hello3, s.say("Yes\nNO"))
	if !errors.Is(err, dialect.ErrCutShort) || f.Tr.Visible(s.run) != "Yes\nNO" || !f.Tr.Turns[0].Unfinished() {
		t.Errorf("%v, %q", err, f.Tr.Visible(s.run))
	}
}

func TestEndedRunsAreForgottenInTime(t *testing.T) {
	d := &decoder{}
	for i := range 3 * maxEnded {
		s := &script{run: strings.Repeat("r", i+1), session: "s"}
		if _, err := d.Decode(dialect.Frame{Data: []byte(s.chat("final", "x", nil))}); err != nil {
			t.Fatal(err)
		}
	}
	if len(d.EndedRuns) != maxEnded || len(d.EndedRuns[0]) != 2*maxEnded+1 || len(d.Runs) != 0 {
		t.Errorf("%d are remembered, %d open", len(d.EndedRuns), len(d.Runs))
	}
}

// FuzzDecode feeds lines of any content: no panic, no event out of place, and a restored decoder produces the same events.
func FuzzDecode(f *testing.F) {
	add := func(lines ...string) { f.Add([]byte(strings.Join(lines, "\n")), uint64(len(lines))) }
	s := ready("s")
	add(hello3, s.say("Look:\nMEDIA:/a/b.png\n[[reply"), s.tool("start", "c", fields{"args": 1}), s.tool("result", "c", fields{"result": texts("1")}), s.say("NO"), s.chat("final", "Look:\nNO_REPLY", nil))
	s = ready("s")
	add(hello4, s.item("a", "One"), s.item("b", "Two"), s.agent("assistant", fields{"text": "", "itemId": "a", "replace": true}), s.chat("final", "Zero\n\nTwo\n\nThree", nil))
	s = ready("s")
	add(s.agent("thinking", fields{"text": "Hm", "delta": "Hm"}), s.agent("item", fields{"itemId": "tool:c", "kind": "tool", "status": "failed"}), s.agent("command_output", fields{"itemId": "command:c", "output": "a"}), s.chat("aborted", "One", nil))
	s = ready("s")
	add(s.agent("lifecycle", fields{"phase": "start"}), s.agent("usage", fields{"outputTokens": 5}), s.agent("assistant", fields{"text": "x\ny", "delta": "", "mediaUrls": []string{"./p"}}), s.chat("error", "", fields{"errorKind": "timeout"}))
	f.Fuzz(func(t *testing.T, body []byte, seed uint64) {
		var in [][]byte
		probe := Dialect().Decoder()
		for _, line := range bytes.Split(body, []byte("\n")) {
			if _, err := probe.Decode(dialect.Frame{Data: line}); err != nil {
				var de *dialect.Error
				if !errors.As(err, &de) || de.Frame != len(in)+1 {
					t.Fatalf("%v", err)
				}
				break
			}
			in = append(in, line)
		}
		want, wantErr := operations(t, in, never)
		newFolder(t).apply(want)
		rng := rand.New(rand.NewPCG(seed, 0))
		got, err := operations(t, in, func(int) bool { return rng.IntN(2) == 0 })
		if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, wantErr) {
			t.Fatalf("restored: %v, operations (-want +got):\n%s", err, diff)
		}
	})
}
