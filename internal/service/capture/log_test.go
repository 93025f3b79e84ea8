package capture

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func open(t *testing.T, o Options) *Log {
	t.Helper()
	if o.Retention == 0 {
		o.Retention = DefaultRetention
	}
	if o.Size == 0 {
		o.Size = DefaultSize
	}
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func shut(t *testing.T, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// kept returns the entries of a turn, without their times.
func kept(t *testing.T, l *Log, turn string) (all []string) {
	t.Helper()
	err := l.Read(t.Context(), turn, func(e Entry) error {
		text := string(e.Kind) + " " + string(e.Data)
		switch e.Kind {
		case KindBegin:
			text += e.Meta.Agent
		case KindLost:
			text += fmt.Sprint(e.N)
		}
		all = append(all, strings.TrimSpace(text))
		if e.At == 0 {
			t.Errorf("%s has no time", text)
		}
		return nil
	})
	if err != nil && !errors.Is(err, ErrNotKept) {
		t.Fatal(err)
	}
	return all
}

func wants(t *testing.T, l *Log, turn string, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, kept(t, l, turn)); d != "" {
		t.Errorf("%s (-want +got):\n%s", turn, d)
	}
}

// onDisk returns the contents of all segments.
func onDisk(t *testing.T, dir string) []byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	return all
}

func TestEntries(t *testing.T) {
	dir := t.TempDir()
	l := open(t, Options{Dir: dir})
	one := l.Turn(Meta{Turn: "t1", Conversation: "c", Agent: "a"})
	two := l.Turn(Meta{Turn: "t2", Conversation: "c", Agent: "b"})
	silent := l.Turn(Meta{Turn: "t3", Conversation: "c"})
	one.Raw(true, []byte("ask"))
	two.Raw(false, []byte("message 1"))
	one.SetDialect("anthropic", true)
	one.Raw(false, []byte("line 1\nli"))
	two.Raw(false, []byte("message 2"))
	one.Raw(false, []byte("ne 2\nhalf"))
	one.Close()
	silent.Close()
	first := []string{"begin a", "sent ask", "speaks anthropic", "received line 1", "received line 2", "received half", "end"}
	wants(t, l, "t1", first...)
	wants(t, l, "t2", "begin b", "received message 1", "received message 2")
	wants(t, l, "t3")
	wants(t, l, "none")
	shut(t, l)
	// A turn that is resumed after a restart.
	l = open(t, Options{Dir: dir})
	two = l.Turn(Meta{Turn: "t2", Conversation: "c", Agent: "b"})
	two.SetDialect("letta-code", false)
	two.Raw(false, []byte("message 3"))
	two.Close()
	wants(t, l, "t1", first...)
	wants(t, l, "t2", "begin b", "received message 1", "received message 2", "begin b", "messages letta-code", "received message 3", "end")
	if err := l.Forget(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	shut(t, l)
	for _, text := range []string{"message", "half", "line"} {
		if bytes.Contains(onDisk(t, dir), []byte(text)) {
			t.Errorf("%q is still in the files", text)
		}
	}
	if l.Turn(Meta{}).Raw(true, []byte("late")); !errors.Is(l.Forget(t.Context(), "c"), errClosed) {
		t.Error("Forget on a closed log succeeded")
	}
}

func TestNoRecords(t *testing.T) {
	var l *Log
	turn := l.Turn(Meta{Turn: "t"})
	turn.SetDialect("d", true)
	turn.Raw(true, []byte("x"))
	turn.Close()
	if err := errors.Join(l.Forget(t.Context(), "c"), l.Close()); err != nil {
		t.Error(err)
	}
	wants(t, l, "t")
}

func TestForgetDuringTurn(t *testing.T) {
	dir := t.TempDir()
	l := open(t, Options{Dir: dir})
	defer shut(t, l)
	spoken, silent := l.Turn(Meta{Turn: "t1", Conversation: "c"}), l.Turn(Meta{Turn: "t2", Conversation: "c"})
	other := l.Turn(Meta{Turn: "t3", Conversation: "other"})
	spoken.Raw(false, []byte("secret one"))
	other.Raw(false, []byte("stays"))
	if err := l.Forget(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	spoken.Raw(false, []byte("secret two"))
	silent.Raw(false, []byte("secret three"))
	spoken.Close()
	silent.Close()
	wants(t, l, "t1")
	wants(t, l, "t2")
	wants(t, l, "t3", "begin", "received stays")
	if bytes.Contains(onDisk(t, dir), []byte("secret")) {
		t.Error("forgotten records are still in the files")
	}
}

// A crash leaves an incomplete record at the end. The records before it can be read, and the rest is removed from the file.
func TestTorn(t *testing.T) {
	dir := t.TempDir()
	l := open(t, Options{Dir: dir})
	turn := l.Turn(Meta{Turn: "t", Conversation: "c", Agent: "a"})
	turn.Raw(false, []byte("first"))
	turn.Raw(false, []byte("second"))
	shut(t, l)
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	whole := onDisk(t, dir)
	for cut := len(whole) - 1; cut >= 0; cut-- {
		if err := os.WriteFile(names[0], whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		l := open(t, Options{Dir: dir})
		got := kept(t, l, "t")
		shut(t, l)
		want := []string{"begin a", "received first"}
		if len(got) > len(want) || (len(got) > 0 && !cmp.Equal(got, want[:len(got)])) {
			t.Fatalf("cut at %d: %q", cut, got)
		}
		if cut > len(whole)-len("second") && (len(got) != 2 || bytes.Contains(onDisk(t, dir), []byte("sec"))) {
			t.Fatalf("cut at %d: %q, and %q on the disk", cut, got, onDisk(t, dir))
		}
	}
	// A byte changed on the disk invalidates only its own record.
	broken := bytes.Clone(whole)
	broken[len(broken)-1] ^= 1
	if err := os.WriteFile(names[0], broken, 0o600); err != nil {
		t.Fatal(err)
	}
	l = open(t, Options{Dir: dir})
	defer shut(t, l)
	wants(t, l, "t", "begin a", "received first")
}

func TestRing(t *testing.T) {
	dir := t.TempDir()
	const size = 1 << 20
	l := open(t, Options{Dir: dir, Size: size})
	defer shut(t, l)
	piece := bytes.Repeat([]byte("x"), 10_000)
	for i := range 300 {
		turn := l.Turn(Meta{Turn: fmt.Sprint(i), Conversation: "c"})
		turn.Raw(false, piece)
		turn.Close()
		if i%10 == 0 {
			wants(t, l, "none") // it has kept up
			if n := len(onDisk(t, dir)); n > size {
				t.Fatalf("%d bytes", n)
			}
		}
	}
	wants(t, l, "0")
	if got := kept(t, l, "299"); len(got) != 3 {
		t.Errorf("the last entry is %.40q", got)
	}
	if n := len(onDisk(t, dir)); n < size/2 {
		t.Errorf("only %d bytes are stored", n)
	}
	// Deleted segments are removed from the index too.
	if n := len(l.ring.turns); n > 110 {
		t.Errorf("%d turns are in the index", n)
	}
}

func TestAge(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := open(t, Options{Dir: dir, Retention: time.Hour})
		old := l.Turn(Meta{Turn: "old", Conversation: "c"})
		old.Raw(false, []byte("x"))
		old.Close()
		time.Sleep(30 * time.Minute)
		young := l.Turn(Meta{Turn: "young", Conversation: "c"})
		young.Raw(false, []byte("y"))
		time.Sleep(40 * time.Minute)
		wants(t, l, "old")
		wants(t, l, "young", "begin", "received y")
		time.Sleep(time.Hour)
		wants(t, l, "young")
		if n := len(onDisk(t, dir)); n > 0 {
			t.Errorf("%d bytes remain", n)
		}
		// The turn continues in another segment.
		young.Raw(false, []byte("z"))
		wants(t, l, "young", "begin", "received z")
		shut(t, l)
	})
}

func TestLargePiecesAndLosses(t *testing.T) {
	l := open(t, Options{Dir: t.TempDir()})
	defer shut(t, l)
	turn := l.Turn(Meta{Turn: "t", Conversation: "c"})
	large := strings.Repeat("0123456789abcdef", 200_000) // 3.2 MB
	turn.Raw(false, []byte(large))
	wants(t, l, "t", "begin", "received "+large)
	// While the goroutine is busy, more data arrives than the queue may hold.
	release, busy := make(chan struct{}), make(chan struct{})
	var task sync.WaitGroup
	task.Go(func() {
		_ = l.do(t.Context(), func() error { close(busy); <-release; return nil })
	})
	<-busy
	half := []byte(strings.Repeat("y", maxQueued/2))
	for range 3 {
		turn.Raw(true, half)
	}
	close(release)
	task.Wait()
	wants(t, l, "none")
	turn.Raw(true, []byte("after"))
	got := kept(t, l, "t")
	if len(got) != 6 || got[4] != fmt.Sprint("lost ", maxQueued/2) || got[5] != "sent after" {
		t.Errorf("%d entries: %.30q", len(got), got)
	}
}

// Disk errors don't block turns, and captures resume afterwards.
func TestDiskErrors(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "raw")
	synctest.Test(t, func(t *testing.T) {
		l := open(t, Options{Dir: dir})
		defer shut(t, l)
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		turn := l.Turn(Meta{Turn: "t", Conversation: "c"})
		turn.Raw(false, []byte("x"))
		wants(t, l, "t")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * suspension)
		turn.Raw(false, []byte("y"))
		wants(t, l, "t", "begin", "received y")
	})
}

func BenchmarkRaw(b *testing.B) {
	l, err := Open(Options{Dir: b.TempDir(), Retention: DefaultRetention, Size: DefaultSize})
	if err != nil {
		b.Fatal(err)
	}
	turn := l.Turn(Meta{Turn: "t", Conversation: "c", Secrets: []string{"a-configured-secret"}})
	turn.SetDialect("anthropic", true)
	piece := []byte("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" about that much\"}}\n\n")
	b.SetBytes(int64(len(piece)))
	for b.Loop() {
		turn.Raw(false, piece)
	}
	turn.Close()
	if err := l.Close(); err != nil { // which has written all
		b.Fatal(err)
	}
}
