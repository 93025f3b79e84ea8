package letta

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
	"github.com/leat-dev/leat/test/binary"
	"github.com/leat-dev/leat/transcript"
)

// The real program is killed twice by SIGKILL during a background run, and restarted: readers see the complete answer,
// and the log has it once.
func TestV1SIGKILLFull(t *testing.T) {
	if os.Getenv("LEAT_FULL") == "" {
		t.Skip("SKIPPED: it builds the program; set LEAT_FULL=1 to run it")
	}
	dir := t.TempDir()
	leatProgram := binary.Leat(t)
	f := newV1(t)
	f.scripts = [][]string{plainRun(spoken...)}
	f.faults = []fault{{how: "gate", frames: 3}, {how: "gate", frames: 2}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	start := func() *exec.Cmd {
		cmd := exec.Command(leatProgram, "serve", "--listen", addr, "--data", filepath.Join(dir, "data"), "--agent", "letta:"+f.srv.URL+"?agent=agent-1")
		cmd.Stderr = t.Output()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) // errors mean that it has ended
		eventually(t, "the program answers", func() bool {
			res, err := http.Get("http://" + addr + "/healthz")
			return err == nil && res.Body.Close() == nil
		})
		return cmd
	}
	cmd := start()
	client := &leat.Client{URL: "http://" + addr}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	c, err := client.Create(ctx, leat.CreateOptions{Agent: "letta"})
	if err != nil {
		t.Fatal(err)
	}
	ack, err := client.Send(ctx, c.ID, "hello")
	if err != nil {
		t.Fatal(err)
	}
	until := func(so func(tr *transcript.Transcript) bool) (last *transcript.Transcript) {
		t.Helper()
		err := client.Follow(ctx, c.ID, func(u leat.Update) error {
			if last = u.Transcript; so(last) {
				return io.EOF
			}
			return nil
		})
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		return last
	}
	end := func(sig os.Signal) {
		t.Helper()
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if _, err := cmd.Process.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	for _, seen := range []string{"One two ", "One two three "} {
		until(func(tr *transcript.Transcript) bool { return tr.Visible(ack.Turn) == seen })
		end(os.Kill)
		cmd = start()
	}
	tr := until(func(tr *transcript.Transcript) bool {
		turn := tr.Turn(ack.Turn)
		return turn != nil && turn.State == transcript.TurnEnded
	})
	if turn := tr.Turn(ack.Turn); turn.Outcome != event.Completed || tr.Visible(ack.Turn) != said {
		t.Errorf("the turn is %s (%+v), visible %q", turn.Outcome, turn.Error, tr.Visible(ack.Turn))
	}
	want := []string{"create conv-1 of agent-1", "send message to conv-1: run-1", "resume run-1 after 2", "resume run-1 after 3"}
	if got := f.lines(); !reflect.DeepEqual(got, want) {
		t.Errorf("the server saw %s", strings.Join(got, "; "))
	}
	end(os.Interrupt)
	wholeOnDisk(t, filepath.Join(dir, "data"), c.ID)
}

// wholeOnDisk checks the log on disk: the pieces of the answer are adjacent, and the turn has one end.
func wholeOnDisk(t *testing.T, data, conversation string) {
	t.Helper()
	j, err := sqlite.Open(sqlite.Options{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}()
	r, err := j.Read(t.Context(), conversation, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	var ends []event.Outcome
	for i := range r.Events {
		switch e := &r.Events[i]; e.Type {
		case event.PartAppend:
			if e.Offset != int64(len(text)) {
				t.Errorf("a piece has the offset %d, want %d", e.Offset, len(text))
			}
			text += e.Text
		case event.TurnEnd:
			ends = append(ends, e.Body.Outcome)
		}
	}
	if text != said || !reflect.DeepEqual(ends, []event.Outcome{event.Completed}) {
		t.Errorf("the log has %q, and the ends %v", text, ends)
	}
}
