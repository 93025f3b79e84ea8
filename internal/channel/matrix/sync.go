package matrix

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/channel"
)

const (
	// syncTime is how long the homeserver may hold a sync without a change. A longer time would save few requests, and proxies in
	// front of homeservers often end a request after a minute.
	syncTime = 30 * time.Second
	// filter asks for messages and for what says who is in a room. Account data is left out, because the position is stored there.
	filter = `{"presence":{"types":[],"not_types":["*"]},"account_data":{"types":[],"not_types":["*"]},` +
		`"room":{"timeline":{"limit":50,"types":["m.room.message","m.room.encrypted","m.room.member"]},` +
		`"state":{"types":[],"not_types":["*"]},"ephemeral":{"types":[],"not_types":["*"]},"account_data":{"types":[],"not_types":["*"]}}}`
	// messageFilter is the same for the messages before a timeline.
	messageFilter = `{"types":["m.room.message","m.room.encrypted","m.room.member"]}`
	// pageSize is how many messages are asked for at once, and maxPages how often, if more were written than a timeline contains. A
	// thousand messages that were written during an outage are enough: people don't expect answers to older ones.
	pageSize = 100
	maxPages = 10
)

// syncAgain are the waits after failed syncs.
var syncAgain = retry.Schedule{Initial: time.Second, Max: 30 * time.Second, Jitter: true}

// syncAnswer is what has changed since a position.
type syncAnswer struct {
	// Next is the position behind these changes.
	Next  string `json:"next_batch"`
	Rooms struct {
		// Join are the rooms with changes of which the bot is a member, and Invite those to which it is invited.
		Join   map[string]joinedRoom      `json:"join"`
		Invite map[string]json.RawMessage `json:"invite"`
	} `json:"rooms"`
}

// joinedRoom has the changes of one room, of which only the timeline is asked for.
type joinedRoom struct {
	Timeline struct {
		Events    []roomEvent `json:"events"`
		IsLimited bool        `json:"limited"` // events are missing before the first
		Before    string      `json:"prev_batch"`
	} `json:"timeline"`
}

// syncer receives what happens in the rooms of a bot.
type syncer struct {
	*bot
	// identity is the bot, which doesn't answer its own messages.
	identity *account
	inbox    channel.Inbox
	// position is used by the goroutine of Run only.
	position position
	tasks    sync.WaitGroup // joins and notices
	joins    atomic.Int64   // invitations that are being accepted
	// slots limits the tasks, because each holds a connection to the homeserver for as long as a join takes.
	slots chan struct{} // holds an element for each task that works
}

// Run implements [channel.Channel].
func (c *bot) Run(ctx context.Context, inbox channel.Inbox) error {
	s := &syncer{bot: c, inbox: inbox, slots: make(chan struct{}, maxTasks)}
	defer s.tasks.Wait()
	if err := s.repeat(ctx, func() (err error) { s.identity, err = c.identify(ctx); return err }); err != nil || s.identity == nil {
		return err
	}
	c.account.Store(s.identity)
	if err := s.repeat(ctx, func() error { return s.load(ctx) }); err != nil {
		return err
	}
	c.log.Info("Matrix bot is ready", "link", c.Link())
	for ctx.Err() == nil {
		if err := s.repeat(ctx, func() error { return s.sync(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

// repeat repeats a request until it succeeds. It returns nil if ctx ends, and an error if the homeserver refuses the access token.
func (s *syncer) repeat(ctx context.Context, do func() error) error {
	for failed := 1; ; failed++ {
		err := do()
		switch {
		case err == nil || ctx.Err() != nil:
			return nil
		case isTokenRefused(err):
			return err
		case failed == 1: // once for an outage
			s.log.Warn("Matrix events can't be received; trying again", "error", err)
		}
		_ = retry.Sleep(ctx, max(syncAgain.Wait(failed), retryAfter(err))) // if ctx ends, so does the loop
	}
}

// identify returns the bot itself.
func (c *bot) identify(ctx context.Context) (*account, error) {
	var answer struct {
		ID string `json:"user_id"`
	}
	if err := c.client.call(ctx, requestLimit, http.MethodGet, path("client/v3/account/whoami"), nil, &answer); err != nil {
		return nil, err
	}
	var profile struct {
		Name string `json:"displayname"`
	}
	err := c.client.call(ctx, requestLimit, http.MethodGet, path("client/v3/profile/%s", answer.ID), nil, &profile)
	if err != nil && !isFinal(err) { // an account may have no profile
		return nil, err
	}
	return &account{answer.ID, profile.Name}, nil
}

// sync waits for changes and passes them on. The first one of an account only finds the position from which messages are new. The
// position advances only when every message of the answer was stored, so an error repeats the whole sync.
func (s *syncer) sync(ctx context.Context) error {
	query := url.Values{"filter": {filter}, "timeout": {strconv.FormatInt(syncTime.Milliseconds(), 10)}}
	isFirst := s.position.Since == ""
	if isFirst {
		query.Set("timeout", "0")
	} else {
		query.Set("since", s.position.Since)
	}
	var answer syncAnswer
	err := s.client.call(ctx, syncTime+requestLimit, http.MethodGet, path("client/v3/sync")+"?"+query.Encode(), nil, &answer)
	// Homeservers forget old positions, for example after their database was restored.
	if status(err) == http.StatusBadRequest && !isFirst {
		s.log.Warn("the homeserver doesn't know the position any more; messages that were written meanwhile are not answered", "error", err)
		s.position.Since = ""
		return nil
	}
	if err != nil {
		return err
	}
	for room := range answer.Rooms.Invite {
		s.join(ctx, room)
	}
	isNew := false
	for room, changes := range answer.Rooms.Join {
		if isFirst {
			s.rooms.forget(room)
			continue
		}
		hasNew, err := s.take(ctx, room, &changes)
		if err != nil {
			return err
		}
		isNew = isNew || hasNew
	}
	s.position.Since = answer.Next
	if isFirst || isNew {
		s.position.savedAt = time.Time{}
	}
	// An invitation is not repeated behind the position, so a bot that is stopped before it has joined has to find it again.
	if time.Since(s.position.savedAt) > saveGap && s.joins.Load() == 0 {
		return s.save(ctx)
	}
	return nil
}

// take passes the messages of a room to the inbox. It reports whether there were any. Members are updated before the message of the
// same sync is passed on, so that a person who has just joined has a name.
func (s *syncer) take(ctx context.Context, room string, changes *joinedRoom) (hasNew bool, err error) {
	events := changes.Timeline.Events
	start, hasJoined := s.firstNew(events)
	events = events[start:]
	// In a room that the bot has just joined, the earlier messages are older than its membership.
	if changes.Timeline.IsLimited && !hasJoined {
		s.rooms.forget(room)
		earlier, err := s.earlier(ctx, room, changes.Timeline.Before)
		if err != nil {
			return false, err
		}
		events = append(earlier, events...)
	}
	for i := range events {
		e := &events[i]
		if m, user, ok := e.member(); ok {
			s.rooms.update(room, user, m)
		}
		if e.Type == "m.room.encrypted" && e.Sender != s.identity.id {
			s.refuseEncryption(ctx, room)
		}
		m, ok, err := s.inbound(ctx, s.identity, room, e)
		if err != nil {
			return hasNew, err
		}
		if !ok {
			continue
		}
		if err := s.inbox.Receive(ctx, m); err != nil {
			return hasNew, fmt.Errorf("matrix: message %s: %w", m.ID, err)
		}
		hasNew = true
	}
	return hasNew, nil
}

// firstNew returns the first event that may be for the bot, and whether the bot has joined the room in these events. A room that it has
// just joined begins with older messages; those since its invitation are new. A person often writes to a bot before it has accepted
// the invitation, and expects an answer.
func (s *syncer) firstNew(events []roomEvent) (start int, hasJoined bool) {
	invited := -1
	for i := range events {
		switch m, user, ok := events[i].member(); {
		case !ok || user != s.identity.id:
		case m.Membership == "invite":
			invited = i
		case m.Membership == "join" && events[i].Unsigned.Previous.Membership != "join":
			hasJoined, start = true, i+1
			if invited >= 0 {
				start = invited + 1
			}
		}
	}
	return start, hasJoined
}

// earlier returns the messages of a room between the last position and a timeline, oldest first. They are read backward from the
// timeline, because that is the direction in which the position ends them.
func (s *syncer) earlier(ctx context.Context, room, before string) ([]roomEvent, error) {
	var list []roomEvent
	for range maxPages {
		if before == "" {
			break
		}
		query := url.Values{"dir": {"b"}, "from": {before}, "to": {s.position.Since}, "limit": {strconv.Itoa(pageSize)}, "filter": {messageFilter}}
		var page struct {
			Events []roomEvent `json:"chunk"`
			End    string      `json:"end"`
		}
		if err := s.client.call(ctx, requestLimit, http.MethodGet, path("client/v3/rooms/%s/messages", room)+"?"+query.Encode(), nil, &page); err != nil {
			if isFinal(err) {
				s.log.Warn("earlier messages of a room can't be read", "error", err)
				break
			}
			return nil, err
		}
		list = append(list, page.Events...)
		if before = page.End; len(page.Events) == 0 {
			break
		}
	}
	slices.Reverse(list)
	return list, nil
}
