package gateway_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// stuckDisk is a journal whose commits with text wait until it is released.
type stuckDisk struct {
	journal.Journal
	released chan struct{}
}

func (s *stuckDisk) Append(ctx context.Context, b journal.Batch) error {
	for i := range b.Events {
		if b.Events[i].Type == event.PartAppend || b.Events[i].Type == event.PartStart {
			<-s.released
			break
		}
	}
	return s.Journal.Append(ctx, b)
}

// An agent that writes faster than the disk is blocked, whatever the size of its pieces.
func TestEmittersBlock(t *testing.T) {
	for name, size := range map[string]int{"small pieces": 1000, "large pieces": 256 << 10} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const total = 8 << 20
				var said atomic.Int64
				j := &stuckDisk{memory.New(), make(chan struct{})}
				h := newTestGateway(t, j, one(agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
					piece := strings.Repeat("x", size)
					for said.Load() < total {
						if err := out.Text(piece); err != nil {
							return err
						}
						said.Add(int64(size))
					}
					return nil
				})), func(c *gateway.Config) {
					c.Agents = gateway.Agents{"a": {Agent: c.Agents.(gateway.Agents)["a"].Agent, Silence: -1}}
				})
				defer h.close()
				c := h.create(alice)
				turn := h.send(c, "go").Turn
				synctest.Wait() // the agent is blocked or has written everything
				// The bytes in the queue, those in the current commit, and the piece that blocks.
				if n := said.Load(); n == 0 || n > 3<<20 {
					t.Errorf("the agent has written %d bytes while the disk takes none", n)
				}
				close(j.released)
				h.ended(c, turn)
				if n := len(h.view(c).Messages[1].Visible()); int64(n) != said.Load() {
					t.Errorf("%d bytes of %d are there", n, said.Load())
				}
			})
		})
	}
}
