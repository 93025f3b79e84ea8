package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/channel"
)

const (
	// pageSize is how many messages one request returns, and maxPages how many requests a search makes. Two thousand messages are
	// more than a chat gets during one delivery.
	pageSize = 200
	maxPages = 10
	// searchBack is how far a search goes back if the message that is answered is not known.
	searchBack = 24 * time.Hour
)

// search finds out whether a message exists whose creation got no answer. A search is made only when a message may exist, because it
// belongs to a tier that many deliveries together would exhaust.
type search struct {
	// state is that of a delivery that was interrupted. The ids of the messages that it knew occur there.
	state []byte
	// isNeeded means that any message may exist, because a delivery was interrupted. doubts are the keys of messages that may exist
	// because a request got no answer, the last one at lostAt.
	isNeeded bool
	doubts   map[string]bool
	lostAt   time.Time
	// newest is the newest message that the delivery has created or knows, or empty. A lost message is newer.
	newest string
	ids    map[string]bool // ids of messages and files of this delivery
	edited map[string]bool // ids of cards that have stopped being streams
	// byKey are messages that were found, and files with their names and sizes. orphan is a stream that is not known, or empty.
	byKey  map[string]string
	files  []fileObject
	orphan string
}

// newSearch returns the search of a delivery. state is that of one that was interrupted, or nil.
func newSearch(state []byte) search {
	if state == nil {
		return search{}
	}
	var ids struct {
		Newest  string `json:"newest"`
		ReplyTo string `json:"replyTo"`
	}
	_ = json.Unmarshal(state, &ids) // the engine reports the error when it reads the state
	newest, _ := parseReference(ids.Newest)
	replyTo, _ := parseReference(ids.ReplyTo)
	return search{state: state, isNeeded: true, newest: max(newest, replyTo)}
}

// doubt records that a message with a key may exist, if the outcome of its request is unknown. It returns err. The doubt stays until
// a search was made, whatever happens in between.
func (s *search) doubt(key string, err error) error {
	if isUnknown(explain(err)) {
		if s.doubts == nil {
			s.doubts = map[string]bool{}
		}
		s.doubts[key], s.lostAt = true, time.Now()
	}
	return err
}

// know records a message of this delivery.
func (s *search) know(ts string) {
	if s.ids == nil {
		s.ids = map[string]bool{}
	}
	s.ids[ts] = true
	s.newest = max(s.newest, ts)
}

// knowFile records a file of this delivery.
func (s *search) knowFile(id string) {
	if s.ids == nil {
		s.ids = map[string]bool{}
	}
	s.ids[id] = true
}

// isKnown reports whether a message belongs to this delivery or to the one that was interrupted. The state is opaque here. Ids of
// messages are so unusual that a search in its bytes finds no others.
func (s *search) isKnown(ts string) bool { return s.ids[ts] || bytes.Contains(s.state, []byte(ts)) }

// isKnownFile reports whether a file belongs to this delivery, or was the newest message of the one that was interrupted.
func (s *search) isKnownFile(id string) bool {
	return s.ids[id] || bytes.Contains(s.state, []byte("/"+id+`"`))
}

// editCard records that a card has stopped being a stream.
func (s *search) editCard(ts string) {
	if s.edited == nil {
		s.edited = map[string]bool{}
	}
	s.edited[ts] = true
}

// isEdited reports whether a card has to be edited, because it has stopped being a stream.
func (s *search) isEdited(ts string) bool { return s.edited[ts] }

// take returns the message with a key that a search has found, once. A second request with the key then creates a message, as the
// caller wants.
func (s *search) take(key string) string {
	ts := s.byKey[key]
	delete(s.byKey, key)
	return ts
}

// takeFile reports whether a search has found a file, once. Files have no metadata. Two files with one name and size are equal for
// people, so either of them may be taken.
func (s *search) takeFile(name string, size int64) (id string) {
	for i, f := range s.files {
		if f.Name == name && f.Size == size {
			s.files = append(s.files[:i:i], s.files[i+1:]...)
			return f.ID
		}
	}
	return ""
}

// searchChat searches the chat for the messages of the bot since the one that is replyTo, whose id may be empty. It forgets the
// doubts when it has succeeded, because everything that exists is known then.
func (t *chat) searchChat(ctx context.Context, since string) error {
	self := t.c.account.Load()
	if self == nil {
		var err error
		if self, err = t.c.identify(ctx); err != nil {
			return err
		}
	}
	if wait := settleTime - time.Since(t.lostAt); wait > 0 && !t.lostAt.IsZero() {
		if err := retry.Sleep(ctx, wait); err != nil {
			return err
		}
	}
	if since = max(since, t.newest); since == "" {
		since = fmt.Sprintf("%d.000000", time.Now().Add(-searchBack).Unix())
	}
	messages, err := t.messages(ctx, since)
	if err != nil {
		return err
	}
	t.byKey, t.files, t.orphan = map[string]string{}, nil, ""
	for _, m := range messages {
		switch {
		case m.User != self.User && (m.Bot == "" || m.Bot != self.Bot):
		case m.key() != "":
			t.byKey[m.key()] = m.TS
		case len(m.Files) > 0:
			for _, f := range m.Files {
				if !t.isKnownFile(f.ID) {
					t.files = append(t.files, f)
				}
			}
		case !t.isKnown(m.TS) && m.TS > t.orphan:
			t.orphan = m.TS
		}
	}
	t.isNeeded, t.doubts = false, nil
	return nil
}

// messages returns the messages of the chat since an id, in no particular order.
func (t *chat) messages(ctx context.Context, since string) (list []message, err error) {
	method := "conversations.history"
	form := params{"channel": t.at.channel, "oldest": since, "include_all_metadata": "true", "limit": strconv.Itoa(pageSize)}
	if t.at.thread != "" {
		method = "conversations.replies"
		form["ts"] = t.at.thread
	}
	for range maxPages {
		var page struct {
			Messages []message `json:"messages"`
			Next     struct {
				Cursor string `json:"next_cursor"`
			} `json:"response_metadata"`
		}
		if err := t.c.client.call(ctx, method, form, &page); err != nil {
			return nil, err
		}
		list = append(list, page.Messages...)
		if form["cursor"] = page.Next.Cursor; form["cursor"] == "" {
			break
		}
	}
	return list, nil
}

// undecided returns the error of a message that may exist, because it can't be looked for now. If the reason passes, the engine
// repeats the request, and with it the search. Otherwise the message is reported as possibly delivered.
func (t *chat) undecided(err error) error {
	if isRefusal(err) && retryAfter(err) == 0 && explain(err) == err {
		return fmt.Errorf("%w: %w", channel.ErrUnknownOutcome, err) // for example because the app lacks a scope
	}
	return explain(err)
}
