// The messages of a conversation in Eliza's form, page by page, with a position for what is still running.

package eliza

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/transcript"
)

// maxList is how many bytes of text are read for a list. A conversation above that gets a shorter list.
const maxList = 8 << 20

// errTurnGone reports that the conversation no longer has a turn: it was truncated or trimmed away.
var errTurnGone = errors.New("eliza: turn no longer in the conversation")

// history is the newest part of a conversation, joined from pages.
//
// A turn can begin on one page and end on a later one, and both pages contain it. The history has each
// turn once, as the newer page had it.
type history struct {
	messages []*transcript.Message
	turns    []*transcript.Turn
	earlier  bool // the conversation has older messages
}

// readHistory reads pages, newest first, until isEnough returns true or the conversation starts.
//
// isEnough is called after each page with everything that was read so far. The pages come from the journal
// if the feed no longer has them in memory, so a caller should stop as early as possible.
func readHistory(ctx context.Context, f *feed.Feed, isEnough func(*history) bool) (*history, error) {
	// A truncate between two pages can remove the message before which the next page is requested. Start again then: truncates
	// are rare, because people make them.
	for try := 0; ; try++ {
		s, err := tryReadHistory(ctx, f, isEnough)
		if err == nil || try == 3 || !errors.Is(err, feed.ErrNoMessage) {
			return s, err
		}
	}
}

// tryReadHistory is one attempt of readHistory. It fails with feed.ErrNoMessage if the message at which a
// page begins was removed.
func tryReadHistory(ctx context.Context, f *feed.Feed, isEnough func(*history) bool) (*history, error) {
	s := &history{earlier: true}
	hasTurn := make(map[string]bool)
	before := ""
	for s.earlier {
		p, err := f.Page(ctx, before, feed.MaxPage)
		if err != nil {
			return nil, fmt.Errorf("eliza: read messages: %w", err)
		}
		s.messages = append(slices.Clone(p.Messages), s.messages...)
		var turns []*transcript.Turn
		for _, t := range p.Turns {
			if !hasTurn[t.ID] {
				hasTurn[t.ID] = true
				turns = append(turns, t)
			}
		}
		s.turns = append(turns, s.turns...)
		s.earlier, before = p.Earlier, p.FirstMessage()
		if before == "" || isEnough(s) {
			break
		}
	}
	return s, nil
}

// newestMessages returns the list of a conversation's newest messages.
//
// It reads until there is one message more than the list needs, or until the texts exceed maxList bytes:
// an answer that includes files as text can be megabytes long, and the list must not load all of the
// conversation for it.
func newestMessages(ctx context.Context, f *feed.Feed) ([]message, error) {
	s, err := readHistory(ctx, f, func(s *history) bool {
		size := 0
		for _, m := range s.messages {
			size += m.Size()
		}
		// One more than needed, because the oldest may be a turn whose first messages are further back.
		return size > maxList || len(list(s.messages, s.turns)) > maxListed
	})
	if err != nil {
		return nil, err
	}
	messages := list(s.messages, s.turns)
	return messages[max(0, len(messages)-maxListed):], nil
}

// state is a turn at one moment.
type state struct {
	turn   transcript.Turn
	seq    int64  // of the log
	cursor string // at which a reader of this state resumes
	// Only while the turn runs.
	text     string
	progress progress
	// Only after the turn has ended: all of it.
	answer answer
}

func (s *state) hasEnded() bool { return !s.turn.Unfinished() }

// readState returns the current state of a turn, or errTurnGone. It runs for every reader after every commit, so of a running
// turn it copies only the text, and with withoutText nothing.
//
// A running turn is always complete in the feed. An ended one may have been trimmed from memory between
// its end and this call, because the feed drops the oldest messages first. In that case the turn is read
// again from the journal, once.
func readState(ctx context.Context, f *feed.Feed, turn string, withoutText bool) (s state, err error) {
	complete := false
	f.View(func(t *transcript.Transcript) {
		s.seq = t.Seq
		u := t.Turn(turn)
		if u == nil {
			return
		}
		s.turn = *u
		from := slices.IndexFunc(t.Messages, func(m *transcript.Message) bool { return m.Turn == turn })
		if from < 0 {
			from = len(t.Messages)
		}
		if s.hasEnded() {
			// The feed may have trimmed the first messages of the turn, but not yet the last ones.
			complete = !t.Earlier || (len(t.Messages) > 0 && t.Messages[0].Seq <= u.FirstSeq)
			if complete {
				u := s.turn
				s.answer, _ = answerOf(t.Snapshot(from).Messages, []*transcript.Turn{&u}, turn)
			}
			return
		}
		complete = true // a feed keeps every running turn from its start
		current, _ := answerOf(t.Messages[from:], t.Turns, turn)
		s.progress = current.progress()
		if !withoutText {
			s.text = current.text()
		}
	})
	if complete {
		return s, nil
	}
	older, err := readHistory(ctx, f, func(older *history) bool {
		a, ok := answerOf(older.messages, older.turns, turn)
		return ok && older.messages[0].Seq <= a.turn.FirstSeq
	})
	if err != nil {
		return s, err
	}
	a, ok := answerOf(older.messages, older.turns, turn)
	if !ok {
		return s, errTurnGone
	}
	s.turn, s.answer, s.text, s.progress = *a.turn, a, a.text(), a.progress()
	return s, nil
}

// turnAt returns the id of the turn that ran at a seq, or errTurnGone. Turns of a conversation run one after another. Waiting
// turns and children inside their parents can span the same seq, but they do not count.
//
// It resolves the id of the last frame that a client received. The feed's memory is searched first. Only
// if the seq is older than its first message are pages read from the journal.
func turnAt(ctx context.Context, f *feed.Feed, seq int64) (string, error) {
	if seq > f.Head() {
		return "", errTurnGone
	}
	id := ""
	covered := false
	f.View(func(t *transcript.Transcript) {
		id = turnOf(t.Turns, seq)
		covered = !t.Earlier || (len(t.Messages) > 0 && t.Messages[0].Seq <= seq)
	})
	if id != "" || covered {
		return foundTurn(id)
	}
	s, err := readHistory(ctx, f, func(s *history) bool {
		return turnOf(s.turns, seq) != "" || s.messages[0].Seq <= seq
	})
	if err != nil {
		return "", err
	}
	return foundTurn(turnOf(s.turns, seq))
}

// foundTurn returns errTurnGone for an empty id, so that callers can't mistake a missing turn for a turn
// without an id.
func foundTurn(id string) (string, error) {
	if id == "" {
		return "", errTurnGone
	}
	return id, nil
}

// runningTurn returns the id of the turn that runs or awaits approval, or "". With foreign, a turn that its upstream started is
// returned if no other runs.
func runningTurn(f *feed.Feed, foreign bool) string {
	id := ""
	f.View(func(t *transcript.Transcript) {
		for _, u := range t.Turns {
			switch runs := u.State == transcript.TurnRunning || u.State == transcript.TurnWaiting; {
			case runs && u.Parent == "" && u.Source == "":
				id = u.ID
				return
			case runs && u.Source != "" && foreign && id == "":
				id = u.ID
			}
		}
	})
	return id
}

// turnOf returns the id of the turn whose range in the log contains a seq, or "". Turns inside another
// turn, and turns that the upstream started, run at the same time as others, so they are skipped.
func turnOf(turns []*transcript.Turn, seq int64) string {
	best := ""
	var since int64
	for _, t := range turns {
		if t.Parent != "" || t.Source != "" || !hasStarted(t) || seq < t.FirstSeq || (!t.Unfinished() && seq > t.EndSeq) {
			continue
		}
		// Of turns that waited at the same time, the earliest ran first.
		if best == "" || t.FirstSeq < since {
			best, since = t.ID, t.FirstSeq
		}
	}
	return best
}

// hasStarted reports whether a turn runs or has run. A turn that waits, or was stopped before it ran, has no range in the log,
// because other turns ran at that time.
func hasStarted(t *transcript.Turn) bool { return t.State != transcript.TurnQueued && t.StartedAt != 0 }

// position returns the cursor of a reader that has this state: the end of the turn if the log has continued after it.
func (s *state) position(f *feed.Feed) string {
	t, seq := &s.turn, s.seq
	if !hasStarted(t) {
		return ""
	}
	if !t.Unfinished() {
		seq = min(seq, t.EndSeq)
	}
	return string(f.CursorAt(seq))
}
