package gateway_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// gated is a journal whose commits wait until its gate is open.
type gated struct {
	journal.Journal
	gate chan struct{}
}

func (g *gated) Append(ctx context.Context, b journal.Batch) error {
	<-g.gate
	return g.Journal.Append(ctx, b)
}

// TestNothingIsAcknowledgedThatAShutdownLeftOut detaches a pushed turn while some of its bytes still wait for the commit
// before theirs.
func TestNothingIsAcknowledgedThatAShutdownLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &gated{memory.New(), make(chan struct{})}
		open := func() { close(disk.gate) }
		open()
		h := newTestGateway(t, disk, nil, nil)
		c := h.create(admin)
		pr := h.push(c)
		lines := strings.SplitAfter(pushed, "\n")
		write := func(line string) {
			t.Helper()
			pr.Acks() // asks for the acknowledgement of the line
			if err := pr.Write(t.Context(), []byte(line)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		write(lines[0])
		disk.gate = make(chan struct{})
		write(lines[1]) // waits in its commit
		write(lines[2]) // waits for that
		down := make(chan struct{})
		go func() { h.close(); close(down) }()
		time.Sleep(time.Second) // the turn is detached
		open()
		<-down
		acked := int64(-1)
		select {
		case a := <-pr.Acks():
			acked = a.Offset
		default:
			t.Error("the first lines were not acknowledged")
		}
		if err := pr.Close(false); err != nil {
			t.Error(err)
		}

		h = newTestGateway(t, disk.Journal, nil, nil)
		defer h.close()
		progress, err := h.Progress(t.Context(), admin, pr.Turn)
		if err != nil || progress.IsEnded {
			t.Fatal(progress.Offset, progress.IsEnded, err)
		}
		if acked > progress.Offset {
			t.Errorf("byte %d was acknowledged; after the restart the log has %d", acked, progress.Offset)
		}
	})
}
