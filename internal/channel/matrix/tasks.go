package matrix

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/channel"
)

const (
	// maxTasks is how many rooms are joined at once. To join a room of another server can take minutes.
	maxTasks = 4
	// maxJoins is how often a join is tried.
	maxJoins = 6
	// textEncrypted is what an encrypted room gets. Silence would look like a bot that is broken.
	textEncrypted = "I can't read encrypted messages. Please write to me in a room without encryption."
)

// start runs a task when fewer than maxTasks work. Run waits for it at its end, so it has to end with ctx.
func (s *syncer) start(ctx context.Context, run func()) {
	s.tasks.Go(func() {
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
			run()
		case <-ctx.Done():
		}
	})
}

// join accepts an invitation. The syncer doesn't wait for it. Every invitation is accepted: whom the bot answers is the
// pipeline's decision. The result appears in a later sync, in which the room has been joined.
func (s *syncer) join(ctx context.Context, room string) {
	s.joins.Add(1)
	s.start(ctx, func() {
		// Nothing is changed if ctx has ended, so the position before the invitation stays.
		for failed := 1; ; failed++ {
			err := s.client.call(ctx, syncTime+requestLimit, http.MethodPost, path("client/v3/join/%s", room), struct{}{}, nil)
			if ctx.Err() != nil {
				return
			}
			if err == nil || isFinal(err) || failed == maxJoins { // the invitation was withdrawn, or the room's server doesn't answer
				s.joins.Add(-1)
				if err != nil {
					s.log.Warn("an invitation can't be accepted", "error", err)
				}
				return
			}
			_ = retry.Sleep(ctx, max(syncAgain.Wait(failed), retryAfter(err))) // if ctx ends, so does the loop
		}
	})
}

// refuseEncryption tells a room once that the bot can't read it.
func (s *syncer) refuseEncryption(ctx context.Context, room string) {
	if slices.Contains(s.position.Encrypted, room) {
		return
	}
	if len(s.position.Encrypted) >= maxRooms {
		s.position.Encrypted = s.position.Encrypted[1:]
	}
	s.position.Encrypted = append(s.position.Encrypted, room)
	s.position.savedAt = time.Time{} // save soon
	s.start(ctx, func() {
		m := channel.OutboundMessage{ChatID: room, Content: textEncrypted, Key: "encrypted/" + room}
		if err := s.Send(ctx, m); err != nil && ctx.Err() == nil {
			s.log.Debug("an encrypted room could not be answered", "error", err)
		}
	})
}
