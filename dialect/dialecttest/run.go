// The checks of every dialect: all recordings, cut at every place, resumed from every state.

package dialecttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/sse"
	"github.com/leat-dev/leat/transcript"
)

const (
	// chunkings is the number of random divisions into pieces in which each stream is decoded.
	chunkings = 20
	// maxCuts is the number of positions at which a frame is cut in two. A longer frame is cut at evenly spaced positions.
	maxCuts = 200
	// longBody is the length in bytes above which a stream gets a tenth of the chunkings. Above fewBytes the number of cuts in each frame
	// falls with the length of the body. Without these the suite of a dialect with long recordings would take minutes.
	longBody = 50_000
	fewBytes = 8_000
)

// unknown is a frame that no dialect knows. It has the keys by which dialects find the type of a frame.
var unknown = []byte(`{"type":"dialecttest.unknown","event":"dialecttest.unknown"}`)

// Run checks that a dialect keeps the promises of package dialect on every stream of a corpus. Each check compares its result with the
// operations of the stream decoded at once, so a corpus needs no expected results; [Golden] has those. The subtests of a stream are
//
//	chunks    the division of the body into pieces changes nothing
//	resume    a stream and a mapper that are restored between pieces continue like the originals
//	restore   a decoder that is restored before every frame continues like the original
//	cut       every prefix of the stream is reported as cut short and completes no turn
//	invalid   a broken frame is an error that names it, and every later frame is refused
//	unknown   unknown frames change nothing and are counted
//	wire      frames in a form that only encoding/json reads change nothing
//	after     frames after the end of the turn, or after Close, give nothing
//
// The streams of a corpus are checked in parallel.
func Run(t *testing.T, d dialect.Dialect, corpus []Stream) {
	if len(corpus) == 0 {
		t.Fatal("the corpus is empty")
	}
	for _, s := range corpus {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			// The operations of the stream decoded at once are the reference for all checks.
			want := decodeWhole(t, d, s)
			t.Run("chunks", func(t *testing.T) { chunks(t, d, s, want) })
			t.Run("resume", func(t *testing.T) { resume(t, d, s, want) })
			frames := framesOf(t, d, s.Body)
			t.Run("restore", func(t *testing.T) { restore(t, d, frames, want) })
			t.Run("cut", func(t *testing.T) { everyPrefix(t, d, frames) })
			t.Run("invalid", func(t *testing.T) { invalid(t, d, frames) })
			t.Run("unknown", func(t *testing.T) { ignored(t, d, frames, want) })
			t.Run("wire", func(t *testing.T) { wire(t, d, frames, want) })
			t.Run("after", func(t *testing.T) { after(t, d, s, frames) })
		})
	}
}

// decodeWhole decodes a stream in one piece and checks its operations: they apply to a transcript in their order, each changes
// something, none has a field that only the log may set, and a turn has ended unless the stream is unfinished. A running tool must
// not be ended, because the transcript would then show it as failed, whatever its result was.
func decodeWhole(t *testing.T, d dialect.Dialect, s Stream) []event.Event {
	t.Helper()
	ops := feed(t, d, s, s.Body)
	f := NewFolder()
	// One operation at a time, so that the transcript has its state right before each end.
	for i := range ops {
		e := &ops[i]
		count := len(f.Events)
		if err := f.Fold(ops[i : i+1]); err != nil {
			t.Fatalf("the operations don't apply: %v", err)
		}
		for _, e := range f.Events[count:] {
			if e.Type == event.PartEnd && isRunning(&f.Transcript, e.Message, e.Part) {
				t.Errorf("operation %d ends the part of a running tool; set its final state first, or leave the part open until the turn ends", i)
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
	// A recording may have several turns; one end is enough.
	if !s.Unfinished && endCount == 0 {
		t.Error("no turn has ended")
	}
	return ops
}

// isRunning reports whether a part is a tool that is shown as running. A tool without any state isn't: its stream never has its result.
func isRunning(tr *transcript.Transcript, message, part string) bool {
	p := tr.Message(message).Part(part)
	return p.Kind == event.KindTool && p.State == event.PartRunning
}

// feed decodes a stream in pieces. Close must report it as cut short if it is unfinished, and succeed otherwise.
func feed(t *testing.T, d dialect.Dialect, s Stream, pieces ...[]byte) []event.Event {
	t.Helper()
	st := dialect.NewStream(d)
	var ops []event.Event
	for _, p := range pieces {
		ops = append(ops, write(t, st, p)...)
	}
	got, err := st.Close()
	if s.Unfinished != errors.Is(err, dialect.ErrCutShort) || (!s.Unfinished && err != nil) {
		t.Fatalf("Close: %v; the stream is cut: %v", err, s.Unfinished)
	}
	return append(ops, got...)
}

// sameOps compares lists of operations field by field, also the JSON that they contain, because the log stores them as they are. It
// fails the test and returns false if the operations differ. label names the way in which got was decoded.
func sameOps(t *testing.T, label string, want, got []event.Event) bool {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: the operations differ (-want +got):\n%s", label, diff)
		return false
	}
	return true
}

// chunks checks that the division of a body into pieces changes nothing: single bytes, random pieces, and each frame cut in two.
func chunks(t *testing.T, d dialect.Dialect, s Stream, want []event.Event) {
	single := make([][]byte, len(s.Body))
	for i := range s.Body {
		single[i] = s.Body[i : i+1]
	}
	// Single bytes split every character and every line end.
	sameOps(t, "byte by byte", want, feed(t, d, s, single...))
	// The seed of a failure is in its message, so that the same division can be tried again.
	n := chunkings
	if len(s.Body) > longBody {
		n /= 10
	}
	for round := range uint64(n) {
		if !sameOps(t, "random pieces", want, feed(t, d, s, pieces(s.Body, round)...)) {
			t.Fatalf("seed %d", round)
		}
	}
	// After the end of a turn a stream may stop anywhere, so isOver turns the check for a cut stream off.
	st := dialect.NewStream(d)
	isOver := false
	for pos := 0; pos < len(s.Body); {
		pos, isOver = everyCut(t, d, s, st, pos, isOver)
	}
}

// everyCut cuts the frame that begins at byte pos in two, at each position that maxCuts allows. A stream that was restored before
// the frame must return the same operations for the two pieces as for the frame, and must report a stream that ends after the first
// piece as cut short. everyCut returns the position of the next frame and whether a turn has ended before it. st must be at pos; it
// is moved to the next frame.
func everyCut(t *testing.T, d dialect.Dialect, s Stream, st *dialect.Stream, pos int, isOver bool) (int, bool) {
	// Only single bytes show where the frame ends: st moves its offset with the last byte.
	state := stateOf(t, st)
	var want []event.Event
	end := pos
	for ; end < len(s.Body) && st.Offset() <= int64(pos); end++ {
		want = write(t, st, s.Body[end:end+1])
	}
	n := max(1, maxCuts*fewBytes/max(len(s.Body), fewBytes))
	step := 1 + (end-pos)/n
	for i := pos + 1; i < end; i += step {
		stream, firstOps := half(t, d, state, s.Body[pos:i])
		if !isOver && !ends(firstOps) {
			prefix, _ := half(t, d, state, s.Body[pos:i])
			if err := checkCutShort(d, prefix); err != nil {
				t.Fatalf("frame at byte %d, cut at %d and closed: %v", pos, i, err)
			}
		}
		if got := append(firstOps, write(t, stream, s.Body[i:end])...); !reflect.DeepEqual(want, got) {
			t.Fatalf("frame at byte %d, cut at %d: the operations differ:\n%s", pos, i, cmp.Diff(want, got))
		}
	}
	return end, isOver || ends(want)
}

// half restores a stream from the state before a frame and decodes the first bytes of the frame. It returns the stream, for the caller to
// continue or close.
func half(t *testing.T, d dialect.Dialect, state, body []byte) (*dialect.Stream, []event.Event) {
	t.Helper()
	st := restoreStream(t, d, state)
	return st, write(t, st, body)
}

// checkCutShort closes a stream in the middle of a frame, before the end of a turn. Close must report the stream as cut short and
// end no turn, unless the end of the body is the format's own end (see everyPrefix) or only the line end is missing.
func checkCutShort(d dialect.Dialect, st *dialect.Stream) error {
	if d.Framing == dialect.Lines && json.Valid(bytes.TrimSpace(st.Pending())) {
		return nil // Close decodes the last line without its end, so the frame is complete
	}
	ops, err := st.Close()
	closes := d.EOF && err == nil // a frame before this one has marked the content as final
	if !closes && !errors.Is(err, dialect.ErrCutShort) {
		return fmt.Errorf("want ErrCutShort, got %v", err) //nolint:errorlint // err may be nil
	}
	for _, e := range ops {
		if e.Type == event.TurnEnd && e.Get().Outcome == event.Completed && !closes {
			return errors.New("a stream that was cut completes its turn")
		}
	}
	if closes != ends(ops) {
		return fmt.Errorf("whether Close succeeds is %v, whether it ends the turn is %v", closes, ends(ops))
	}
	return nil
}

// pieces divides a body into pieces of random length, from one to a few hundred bytes. The same salt gives the same pieces.
func pieces(body []byte, salt uint64) [][]byte {
	// Two nested random numbers make short pieces more frequent than long ones: faults are at the borders.
	r := rand.New(rand.NewPCG(salt, 1))
	var chunks [][]byte
	for len(body) > 0 {
		n := min(len(body), 1+r.IntN(1+r.IntN(700)))
		chunks, body = append(chunks, body[:n]), body[n:]
	}
	return chunks
}

// resume drops a stream after random pieces and continues with a new one from the stored state, at the stored offset, as a gateway
// does after a restart. The mapper is restored too. Operations, events and transcript must be those of a stream without
// interruption.
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
		// The offset of the last restart. There is at most one at each offset, because a frame that is longer than the pieces would otherwise
		// never be complete.
		resumedAt := int64(-1)
		for pos := 0; pos < len(s.Body); {
			n := min(len(s.Body)-pos, 1+r.IntN(1+r.IntN(700)))
			fold(write(t, st, s.Body[pos:pos+n]))
			pos += n
			// The offset and the pending bytes together must cover everything written, or a resumed body would have a hole.
			if st.Offset()+int64(len(st.Pending())) != int64(pos) || !bytes.Equal(st.Pending(), s.Body[st.Offset():pos]) {
				t.Fatalf("seed %d: at byte %d the offset is %d, and %d bytes are pending", round, pos, st.Offset(), len(st.Pending()))
			}
			if r.IntN(3) > 0 || st.Offset() == resumedAt {
				continue
			}
			resumedAt = st.Offset()
			next := restoreStream(t, d, stateOf(t, st))
			if next.Offset() != st.Offset() {
				t.Fatalf("the restored stream is at byte %d, not %d", next.Offset(), st.Offset())
			}
			// The body continues at the stored offset: the pending bytes are sent again.
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
		// The restored mappers must have assigned the same ids and offsets as one mapper.
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

// framesOf splits a body into its frames, for the checks that call a decoder without a stream. Lines that aren't JSON are left out:
// an unfinished stream ends in the middle of one.
func framesOf(t testing.TB, d dialect.Dialect, body []byte) []dialect.Frame {
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

// clone returns another decoder in the state of dec, so that dec itself can continue. The state must be JSON, because it is stored inside the
// JSON of a stream's state.
func clone(t *testing.T, d dialect.Dialect, dec dialect.Decoder) dialect.Decoder {
	t.Helper()
	st := stateOf(t, dec)
	if !json.Valid(st) {
		t.Fatalf("State is not JSON: %s", st)
	}
	next := d.Decoder()
	if err := next.Restore(st); err != nil {
		t.Fatalf("Restore: %v", err)
	}
	return next
}

// decode decodes a frame and then overwrites its data, because a decoder must not retain it.
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

// restore continues with a restored decoder at every frame.
func restore(t *testing.T, d dialect.Dialect, frames []dialect.Frame, want []event.Event) {
	dec := d.Decoder()
	var ops []event.Event
	for _, f := range frames {
		dec = clone(t, d, dec)
		ops = append(ops, decode(t, dec, f)...)
	}
	sameOps(t, "restored", want, append(ops, closeStream(t, clone(t, d, dec))...))
}

// everyPrefix closes the stream after each number of frames. Before the end of a turn, Close must report the stream as cut short
// and end no turn. If the end of the body is the format's own end, Close may end the turn, but then the rest of the stream must not
// add content.
func everyPrefix(t *testing.T, d dialect.Dialect, frames []dialect.Frame) {
	dec := d.Decoder()
	f := NewFolder()
	isOver := false
	final := "" // the messages at the first prefix that Close reported as complete
	for i := 0; ; i++ {
		// A copy is closed, because a closed decoder accepts no further frame.
		probe := clone(t, d, dec)
		ops, err := probe.Close()
		// Only a format without an end frame may end the turn at the end of the body.
		closes := d.EOF && !isOver && err == nil
		if !isOver && !closes && !errors.Is(err, dialect.ErrCutShort) {
			t.Fatalf("after %d frames Close says %v", i, err)
		}
		for _, e := range ops {
			if e.Type == event.TurnEnd && e.Get().Outcome == event.Completed && !closes {
				t.Fatalf("after %d frames Close completes a turn", i)
			}
		}
		if endsTurn := ends(ops); closes != endsTurn {
			t.Fatalf("after %d frames: Close succeeds: %v, and ends the turn: %v", i, closes, endsTurn)
		}
		if visible := visibleText(&f.Transcript); closes && final == "" {
			final = visible
		} else if final != "" && visible != final {
			t.Fatalf("after %d frames there is more than when Close first reported the stream as complete:\n%s", i, cmp.Diff(final, visible))
		}
		// A second Close must be harmless, because callers close a stream both at its end and when they give it up.
		secondOps, err := probe.Close()
		if len(secondOps) > 0 || (isOver && err != nil && !errors.Is(err, dialect.ErrCutShort)) {
			t.Fatalf("after %d frames a second Close gives %d operations, %v", i, len(secondOps), err)
		}
		// The probe after the last frame was the whole stream.
		if i == len(frames) {
			return
		}
		got := decode(t, dec, frames[i])
		if err := f.Fold(got); err != nil {
			t.Fatal(err)
		}
		isOver = isOver || ends(got)
	}
}

// visibleText returns the contents of all messages, without the turns: the outcome may still change after the content is complete.
func visibleText(tr *transcript.Transcript) string {
	messages := transcript.Transcript{Messages: tr.Messages}
	return "messages:\n" + Dump(&messages)
}

// invalid replaces a frame by something that isn't a JSON object. The error must name the dialect and the frame's number;
// afterwards the decoder must refuse every frame, and Close must report the stream as cut short.
func invalid(t *testing.T, d dialect.Dialect, frames []dialect.Frame) {
	// As the first frame, and in the middle of the stream, where a decoder has open parts and buffers.
	for _, at := range []int{0, len(frames) / 2} {
		dec := d.Decoder()
		isOver := false
		for _, f := range frames[:at] {
			isOver = ends(decode(t, dec, f)) || isOver
		}
		if isOver {
			continue // the decoder ignores frames after the end, also invalid ones
		}
		// Broken JSON, JSON values that aren't objects, two values in one frame, and a byte that no JSON contains.
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
			// A valid frame after the invalid one must not be decoded: the text between them is missing.
			if at < len(frames) {
				if ops, err := probe.Decode(frames[at]); err == nil || len(ops) > 0 {
					t.Errorf("after %q the decoder accepts a frame: %d operations, %v", bad, len(ops), err)
				}
			}
			if _, err := probe.Close(); !errors.Is(err, dialect.ErrCutShort) {
				t.Errorf("after %q Close says %v", bad, err)
			}
		}
	}
}

// ignored inserts an unknown frame before every frame. The operations must not change, and the unknown frames must be counted.
func ignored(t *testing.T, d dialect.Dialect, frames []dialect.Frame, want []event.Event) {
	dec := d.Decoder()
	var ops []event.Event
	for _, f := range frames {
		ops = append(ops, decode(t, dec, dialect.Frame{Data: unknown})...)
		ops = append(ops, decode(t, dec, f)...)
	}
	sameOps(t, "with unknown frames", want, append(ops, closeStream(t, dec)...))
	// A format that has no unknown frames, because every frame has the same type, doesn't count any.
	if c, ok := dec.(dialect.Counter); ok && len(c.Unknown()) == 0 {
		t.Error("the unknown frames are not counted")
	}
}

// after passes all frames again to a decoder whose turn has ended, and once more after Close. It must return nothing.
func after(t *testing.T, d dialect.Dialect, s Stream, frames []dialect.Frame) {
	if s.Unfinished {
		return // has no end after which frames could follow
	}
	dec := d.Decoder()
	isOver := false
	for _, f := range frames {
		isOver = ends(decode(t, dec, f)) || isOver
	}
	// Without an end frame, only the end of the body ends the turn.
	if d.EOF && !isOver {
		if _, err := dec.Close(); err != nil {
			t.Fatalf("Close at the end of the body: %v", err)
		}
	}
	// An upstream or a proxy may repeat frames after a reconnect. They are not errors, but must not extend the answer.
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
