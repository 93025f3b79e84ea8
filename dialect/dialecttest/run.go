package dialecttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/sse"
	"github.com/leat-dev/leat/transcript"
)

const (
	// chunkings is into how many random chunkings each stream is cut.
	chunkings = 20
	// maxCuts is at how many bytes a frame is cut in two; a longer one is cut at some of its bytes.
	maxCuts = 200
	// long is a body, in bytes, with fewer chunkings, so that suites stay quick; from few on its frames are cut at fewer bytes
	// each, the more of them there are.
	longBody = 50_000
	fewBytes = 8_000
)

// unknown is a frame that no dialect knows.
var unknown = []byte(`{"type":"dialecttest.unknown","event":"dialecttest.unknown"}`)

// Run checks that a dialect keeps the promises of package dialect on every stream of a corpus.
func Run(t *testing.T, d dialect.Dialect, corpus []Stream) {
	if len(corpus) == 0 {
		t.Fatal("the corpus is empty")
	}
	for _, s := range corpus {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			want := decodeWhole(t, d, s)
			t.Run("chunks", func(t *testing.T) { chunks(t, d, s, want) })
			t.Run("resume", func(t *testing.T) { resume(t, d, s, want) })
			frames := framesOf(t, d, s.Body)
			t.Run("restore", func(t *testing.T) { restore(t, d, frames, want) })
			t.Run("cut", func(t *testing.T) { everyPrefix(t, d, frames) })
			t.Run("invalid", func(t *testing.T) { invalid(t, d, frames) })
			t.Run("unknown", func(t *testing.T) { ignored(t, d, frames, want) })
			t.Run("after", func(t *testing.T) { after(t, d, s, frames) })
		})
	}
}

// decodeWhole decodes a stream in one piece and checks its operations.
func decodeWhole(t *testing.T, d dialect.Dialect, s Stream) []event.Event {
	t.Helper()
	ops := feed(t, d, s, s.Body)
	f := NewFolder()
	for i := range ops {
		e := &ops[i]
		count := len(f.Events)
		if err := f.Fold(ops[i : i+1]); err != nil {
			t.Fatalf("the operations don't apply: %v", err)
		}
		for _, e := range f.Events[count:] {
			if e.Type == event.PartEnd && isRunning(&f.Transcript, e.Message, e.Part) {
				t.Errorf("operation %d ends the part of a running tool: tell its result first, or leave it to the end of the turn", i)
			}
		}
		if e.Seq != 0 || e.At != 0 || e.Offset != 0 {
			t.Errorf("operation %d has seq %d, time %d, offset %d: a decoder invents none", i, e.Seq, e.At, e.Offset)
		}
	}
	if f.Mapper.DroppedOps > 0 {
		t.Errorf("%d operations changed nothing, but a decoder must know its earlier operations", f.Mapper.DroppedOps)
	}
	endCount := 0
	for _, turn := range f.Transcript.Turns {
		if !turn.Unfinished() {
			endCount++
		}
	}
	if !s.Unfinished && endCount == 0 {
		t.Error("no turn has ended")
	}
	return ops
}

// isRunning reports whether a part is a tool without a result.
func isRunning(tr *transcript.Transcript, message, part string) bool {
	p := tr.Message(message).Part(part)
	return p.Kind == event.KindTool && p.State == event.PartRunning
}

// feed decodes a stream in pieces.
func feed(t *testing.T, d dialect.Dialect, s Stream, pieces ...[]byte) []event.Event {
	t.Helper()
	st := dialect.NewStream(d)
	var ops []event.Event
	for _, p := range pieces {
		got, err := st.Write(p)
		ops = append(ops, got...)
		if err != nil {
			t.Fatalf("Write: %v", err)
		}
	}
	got, err := st.Close()
	if s.Unfinished != errors.Is(err, dialect.ErrCutShort) || (!s.Unfinished && err != nil) {
		t.Fatalf("Close: %v; the stream is cut: %v", err, s.Unfinished)
	}
	return append(ops, got...)
}

func sameOps(t *testing.T, label string, want, got []event.Event) bool {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: the operations differ (-want +got):\n%s", label, diff)
		return false
	}
	return true
}

func chunks(t *testing.T, d dialect.Dialect, s Stream, want []event.Event) {
	single := make([][]byte, len(s.Body))
	for i := range s.Body {
		single[i] = s.Body[i : i+1]
	}
	sameOps(t, "byte by byte", want, feed(t, d, s, single...))
	n := chunkings
	if len(s.Body) > longBody {
		n /= 10
	}
	for round := range uint64(n) {
		if !sameOps(t, "random pieces", want, feed(t, d, s, pieces(s.Body, round)...)) {
			t.Fatalf("seed %d", round)
		}
	}
	st := dialect.NewStream(d)
	isOver := false
	for pos := 0; pos < len(s.Body); {
		pos, isOver = everyCut(t, d, s, st, pos, isOver)
	}
}

// everyCut cuts the frame that begins at a byte in two, at every byte, and returns where the next one begins and whether a
// turn has ended before it. st stands at the frame, and then behind it.
func everyCut(t *testing.T, d dialect.Dialect, s Stream, st *dialect.Stream, pos int, isOver bool) (int, bool) {
	state, err := st.State()
	if err != nil {
		t.Fatal(err)
	}
	var want []event.Event
	end := pos
	for ; end < len(s.Body) && st.Offset() <= int64(pos); end++ {
		if want, err = st.Write(s.Body[end : end+1]); err != nil {
			t.Fatal(err)
		}
	}
	n := max(1, maxCuts*fewBytes/max(len(s.Body), fewBytes))
	step := 1 + (end-pos)/n
	for i := pos + 1; i < end; i += step {
		resumed, firstOps := half(t, d, state, s.Body[pos:i])
		if !isOver && !ends(firstOps) {
			closing, _ := half(t, d, state, s.Body[pos:i])
			if err := checkCutShort(d, closing); err != nil {
				t.Fatalf("frame at byte %d, cut at %d and closed: %v", pos, i, err)
			}
		}
		second, err := resumed.Write(s.Body[i:end])
		if err != nil {
			t.Fatal(err)
		}
		if got := append(firstOps, second...); !reflect.DeepEqual(want, got) {
			t.Fatalf("frame at byte %d, cut at %d: the operations differ:\n%s", pos, i, cmp.Diff(want, got))
		}
	}
	return end, isOver || ends(want)
}

// half feeds the first bytes of a frame to a stream that was taken up before it.
func half(t *testing.T, d dialect.Dialect, state, body []byte) (*dialect.Stream, []event.Event) {
	t.Helper()
	st := dialect.NewStream(d)
	if err := st.Restore(state); err != nil {
		t.Fatal(err)
	}
	ops, err := st.Write(body)
	if err != nil {
		t.Fatal(err)
	}
	return st, ops
}

// checkCutShort closes a stream in the middle of a frame, before the end of a turn. Close must report the stream as cut short and end no turn,
// unless the end of the body is the format's own end (see everyPrefix) or only the line end is missing.
func checkCutShort(d dialect.Dialect, st *dialect.Stream) error {
	if d.Framing == dialect.Lines && json.Valid(bytes.TrimSpace(st.Pending())) {
		return nil
	}
	ops, err := st.Close()
	closes := d.EOF && err == nil
	if !closes && !errors.Is(err, dialect.ErrCutShort) {
		return fmt.Errorf("want ErrCutShort, got %v", err) //nolint:errorlint // it may be nil
	}
	for _, e := range ops {
		if e.Type == event.TurnEnd && e.Get().Outcome == event.Completed && !closes {
			return errors.New("a turn is complete")
		}
	}
	if closes != ends(ops) {
		return fmt.Errorf("no error: %v, and a turn's end: %v", closes, ends(ops))
	}
	return nil
}

func ends(ops []event.Event) bool {
	return slices.ContainsFunc(ops, func(e event.Event) bool { return e.Type == event.TurnEnd })
}

// pieces cuts a body at random, into pieces of up to a few hundred bytes.
func pieces(body []byte, salt uint64) [][]byte {
	r := rand.New(rand.NewPCG(salt, 1))
	var chunks [][]byte
	for len(body) > 0 {
		n := min(len(body), 1+r.IntN(1+r.IntN(700)))
		chunks, body = append(chunks, body[:n]), body[n:]
	}
	return chunks
}

// resume gives a stream up after random pieces, and takes it up from its state at its offset.
func resume(t *testing.T, d dialect.Dialect, s Stream, want []event.Event) {
	for round := range uint64(4) {
		st := dialect.NewStream(d)
		var ops []event.Event
		f := NewFolder()
		fold := func(got []event.Event) {
			ops = append(ops, got...)
			if err := f.Fold(got); err != nil {
				t.Fatalf("seed %d: fold: %v", round, err)
			}
		}
		r := rand.New(rand.NewPCG(round, 2))
		resumedAt := int64(-1) // offset of the last resume: none but a new one, or a long frame would never be whole
		for pos := 0; pos < len(s.Body); {
			n := min(len(s.Body)-pos, 1+r.IntN(1+r.IntN(700)))
			got, err := st.Write(s.Body[pos : pos+n])
			if err != nil {
				t.Fatalf("seed %d: Write: %v", round, err)
			}
			pos += n
			fold(got)
			if st.Offset()+int64(len(st.Pending())) != int64(pos) || !bytes.Equal(st.Pending(), s.Body[st.Offset():pos]) {
				t.Fatalf("seed %d: at byte %d the offset is %d, and %d bytes are pending", round, pos, st.Offset(), len(st.Pending()))
			}
			if r.IntN(3) > 0 || st.Offset() == resumedAt {
				continue
			}
			resumedAt = st.Offset()
			b, err := st.State()
			if err != nil {
				t.Fatalf("State: %v", err)
			}
			next := dialect.NewStream(d)
			if err := next.Restore(b); err != nil {
				t.Fatalf("Restore: %v", err)
			}
			if next.Offset() != st.Offset() {
				t.Fatalf("the restored stream is at byte %d, not %d", next.Offset(), st.Offset())
			}
			pos = int(next.Offset())
			st = next
			if err := f.Restart(); err != nil {
				t.Fatalf("restore mapper: %v", err)
			}
		}
		got, err := st.Close()
		if s.Unfinished != errors.Is(err, dialect.ErrCutShort) {
			t.Fatalf("seed %d: Close: %v", round, err)
		}
		fold(got)
		sameOps(t, "resumed", want, ops)
		reference := NewFolder()
		if err := reference.Fold(want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(reference.Events, f.Events); diff != "" {
			t.Errorf("seed %d: the mapped events differ:\n%s", round, diff)
		}
		if diff := cmp.Diff(Dump(&reference.Transcript), Dump(&f.Transcript)); diff != "" {
			t.Errorf("seed %d: the transcripts differ:\n%s", round, diff)
		}
	}
}

// framesOf splits a body into its frames.
func framesOf(t *testing.T, d dialect.Dialect, body []byte) []dialect.Frame {
	t.Helper()
	var frames []dialect.Frame
	if d.Framing == dialect.Lines {
		for line := range bytes.Lines(body) {
			if line = bytes.TrimSpace(line); json.Valid(line) {
				frames = append(frames, dialect.Frame{Data: line})
			}
		}
		return frames
	}
	var r sse.Reader
	if err := r.Feed(body, func(e sse.Event) error {
		frames = append(frames, dialect.Frame{Event: e.Name, ID: e.ID, Data: bytes.Clone(e.Data)})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return frames
}

// clone makes another decoder of the same state.
func clone(t *testing.T, d dialect.Dialect, dec dialect.Decoder) dialect.Decoder {
	t.Helper()
	st, err := dec.State()
	if err != nil {
		t.Fatalf("State: %v", err)
	}
	if !json.Valid(st) {
		t.Fatalf("State is not JSON: %s", st)
	}
	next := d.Decoder()
	if err := next.Restore(st); err != nil {
		t.Fatalf("Restore: %v", err)
	}
	return next
}

// decode gives a frame to a decoder and takes the data away afterwards.
func decode(t *testing.T, dec dialect.Decoder, f dialect.Frame) []event.Event {
	t.Helper()
	f.Data = bytes.Clone(f.Data)
	ops, err := dec.Decode(f)
	if err != nil {
		t.Fatalf("Decode: %v", err)
	}
	clear(f.Data)
	return ops
}

// restore stops and restores the decoder at every frame.
func restore(t *testing.T, d dialect.Dialect, frames []dialect.Frame, want []event.Event) {
	dec := d.Decoder()
	var ops []event.Event
	for _, f := range frames {
		dec = clone(t, d, dec)
		ops = append(ops, decode(t, dec, f)...)
	}
	got, err := clone(t, d, dec).Close()
	if err != nil && !errors.Is(err, dialect.ErrCutShort) {
		t.Fatalf("Close: %v", err)
	}
	sameOps(t, "restored", want, append(ops, got...))
}

// everyPrefix ends the stream after every frame. Before the end of a turn, Close must report the stream as cut short and end no turn. If the
// end of the body is the format's own end, Close may end the turn, but then the rest of the stream must not add content.
func everyPrefix(t *testing.T, d dialect.Dialect, frames []dialect.Frame) {
	dec := d.Decoder()
	f := NewFolder()
	isOver := false
	final := "" // what the stream comes to, as Close first said that it is whole
	for i := 0; ; i++ {
		probe := clone(t, d, dec)
		ops, err := probe.Close()
		closes := d.EOF && !isOver && err == nil
		if !isOver && !closes && !errors.Is(err, dialect.ErrCutShort) {
			t.Fatalf("after %d frames Close says %v", i, err)
		}
		endsTurn := false
		for _, e := range ops {
			endsTurn = endsTurn || e.Type == event.TurnEnd
			if e.Type == event.TurnEnd && e.Get().Outcome == event.Completed && !closes {
				t.Fatalf("after %d frames Close completes a turn", i)
			}
		}
		if closes != endsTurn {
			t.Fatalf("after %d frames Close gives no error, and the turn's end: %v", i, endsTurn)
		}
		if visible := visibleText(&f.Transcript); closes && final == "" {
			final = visible
		} else if final != "" && visible != final {
			t.Fatalf("after %d frames there is more than when Close said that the stream was whole:\n%s", i, cmp.Diff(final, visible))
		}
		secondOps, err := probe.Close()
		if len(secondOps) > 0 || (isOver && err != nil && !errors.Is(err, dialect.ErrCutShort)) {
			t.Fatalf("after %d frames a second Close gives %d operations, %v", i, len(secondOps), err)
		}
		if i == len(frames) {
			return
		}
		got := decode(t, dec, frames[i])
		if err := f.Fold(got); err != nil {
			t.Fatal(err)
		}
		for _, e := range got {
			isOver = isOver || e.Type == event.TurnEnd
		}
	}
}

// visibleText returns the text of all messages, whatever the outcome of the turn.
func visibleText(tr *transcript.Transcript) string {
	messages := transcript.Transcript{Messages: tr.Messages}
	return "messages:\n" + Dump(&messages)
}

// invalid puts broken JSON in the place of a frame.
func invalid(t *testing.T, d dialect.Dialect, frames []dialect.Frame) {
	for _, at := range []int{0, len(frames) / 2} {
		dec := d.Decoder()
		isOver := false
		for _, f := range frames[:at] {
			for _, e := range decode(t, dec, f) {
				isOver = isOver || e.Type == event.TurnEnd
			}
		}
		if isOver {
			continue
		}
		for _, bad := range []string{`{"type":`, `[`, `"text"`, `17`, `{"type":"a"}{"type":"b"}`, "\x00"} {
			probe := clone(t, d, dec)
			_, err := probe.Decode(dialect.Frame{Data: []byte(bad)})
			var e *dialect.Error
			if !errors.As(err, &e) {
				t.Errorf("%q gives %v, want a *dialect.Error", bad, err)
				continue
			}
			if e.Dialect != d.Name || e.Frame != at+1 || e.Reason == "" {
				t.Errorf("%q gives %+v, want dialect %s, frame %d and a reason", bad, e, d.Name, at+1)
			}
			if at < len(frames) {
				if ops, err := probe.Decode(frames[at]); err == nil || len(ops) > 0 {
					t.Errorf("after %q the decoder goes on: %d operations, %v", bad, len(ops), err)
				}
			}
			if _, err := probe.Close(); !errors.Is(err, dialect.ErrCutShort) {
				t.Errorf("after %q Close says %v", bad, err)
			}
		}
	}
}

// ignored puts unknown frames between all others.
func ignored(t *testing.T, d dialect.Dialect, frames []dialect.Frame, want []event.Event) {
	dec := d.Decoder()
	var ops []event.Event
	for _, f := range frames {
		ops = append(ops, decode(t, dec, dialect.Frame{Data: unknown})...)
		ops = append(ops, decode(t, dec, f)...)
	}
	got, err := dec.Close()
	if err != nil && !errors.Is(err, dialect.ErrCutShort) {
		t.Fatalf("Close: %v", err)
	}
	sameOps(t, "with unknown frames", want, append(ops, got...))
	if c, ok := dec.(dialect.Counter); ok {
		n := 0
		for _, k := range c.Unknown() {
			n += k
		}
		if n < 1 {
			t.Error("the unknown frames are not counted")
		}
	}
}

// after gives frames to a decoder whose stream has ended.
func after(t *testing.T, d dialect.Dialect, s Stream, frames []dialect.Frame) {
	if s.Unfinished {
		return
	}
	dec := d.Decoder()
	isOver := false
	for _, f := range frames {
		for _, e := range decode(t, dec, f) {
			isOver = isOver || e.Type == event.TurnEnd
		}
	}
	if d.EOF && !isOver {
		if _, err := dec.Close(); err != nil {
			t.Fatalf("Close at the end of the body: %v", err)
		}
	}
	for i, f := range frames {
		if ops := decode(t, dec, f); len(ops) > 0 {
			t.Fatalf("frame %d, after the end, gives %d operations, the first a %s", i+1, len(ops), ops[0].Type)
		}
	}
	if ops, err := dec.Close(); err != nil || len(ops) > 0 {
		t.Errorf("Close after the end: %d operations, %v", len(ops), err)
	}
	for i, f := range frames {
		if ops := decode(t, dec, f); len(ops) > 0 {
			t.Fatalf("frame %d, after Close, gives %d operations", i+1, len(ops))
		}
	}
}
