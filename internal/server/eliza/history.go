package eliza

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/transcript"
)

// maxList bounds what is gathered for a list, in bytes of text. Beyond it the list is shorter.
const maxList = 8 << 20

// errGone says that a turn isn't in the conversation any more: it was truncated or trimmed away.
var errGone = errors.New("eliza: turn is gone")

// stretch is the newest part of a conversation, put together from pages.
type stretch struct {
	messages []*transcript.Message
	turns    []*transcript.Turn
	earlier  bool // there is more before it
}

// gather reads pages, newest first, until there is enough or nothing older.
func gather(ctx context.Context, f *feed.Feed, enough func(*stretch) bool) (*stretch, error) {
	// A truncate between two pages takes away the message that the next one is asked by: then all begins anew. Truncates
	// are rare, and are made by hand.
	for try := 0; ; try++ {
		s, err := gatherOnce(ctx, f, enough)
		if err == nil || try == 3 || !errors.Is(err, feed.ErrNoMessage) {
			return s, err
		}
	}
}

func gatherOnce(ctx context.Context, f *feed.Feed, enough func(*stretch) bool) (*stretch, error) {
	s := &stretch{earlier: true}
	known := make(map[string]bool)
	before := ""
	for s.earlier {
		p, err := f.Page(ctx, before, feed.MaxPage)
		if err != nil {
			return nil, fmt.Errorf("eliza: read messages: %w", err)
		}
		s.messages = append(slices.Clone(p.Messages), s.messages...)
		var turns []*transcript.Turn
		for _, t := range p.Turns {
			if !known[t.ID] {
				known[t.ID] = true
				turns = append(turns, t)
			}
		}
		s.turns = append(turns, s.turns...)
		s.earlier, before = p.Earlier, p.First()
		if before == "" || enough(s) {
			break
		}
	}
	return s, nil
}

// newest returns the last messages of a conversation, as a list.
func newest(ctx context.Context, f *feed.Feed) ([]message, error) {
	s, err := gather(ctx, f, func(s *stretch) bool {
		size := 0
		for _, m := range s.messages {
			size += m.Size()
		}
		// One more than is wanted: the oldest may be a turn whose first messages lie further back.
		return size > maxList || len(list(s.messages, s.turns)) > maxListed
	})
	if err != nil {
		return nil, err
	}
	all := list(s.messages, s.turns)
	return all[max(0, len(all)-maxListed):], nil
}

// state is a turn at one moment.
type state struct {
	turn   transcript.Turn
	seq    int64  // of the log
	cursor string // where a reader stands that was told of it
	// While the turn runs: its visible text and what it does.
	text     string
	progress progress
	// Once it has ended: all of it.
	answer answer
}

func (s *state) ended() bool { return !s.turn.Unfinished() }

// look returns the present state of a turn, or errGone. Where textless is set the text of a running turn is left out.
// While it runs no more than its text is copied, since this is done for each reader at each commit.
func look(ctx context.Context, f *feed.Feed, turn string, textless bool) (s state, err error) {
	whole := false
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
		if s.ended() {
			// Its first messages may have been forgotten and the last ones not yet.
			whole = !t.Earlier || (len(t.Messages) > 0 && t.Messages[0].Seq <= u.FirstSeq)
			if whole {
				u := s.turn
				s.answer, _ = answerOf(t.Snapshot(from).Messages, []*transcript.Turn{&u}, turn)
			}
			return
		}
		whole = true // what a feed holds goes back to the beginning of every turn that runs
		live, _ := answerOf(t.Messages[from:], t.Turns, turn)
		s.progress = live.progress()
		if !textless {
			s.text = live.text()
		}
	})
	if whole {
		return s, nil
	}
	all, err := gather(ctx, f, func(all *stretch) bool {
		a, ok := answerOf(all.messages, all.turns, turn)
		return ok && all.messages[0].Seq <= a.turn.FirstSeq
	})
	if err != nil {
		return s, err
	}
	a, ok := answerOf(all.messages, all.turns, turn)
	if !ok {
		return s, errGone
	}
	s.turn, s.answer, s.text, s.progress = *a.turn, a, a.text(), a.progress()
	return s, nil
}

// turnAt returns the turn in which a seq lies, by its id, or errGone. Of several it is the one that ran then: turns of a
// conversation run one after another, but wait beside each other, and children run inside their parents.
func turnAt(ctx context.Context, f *feed.Feed, seq int64) (string, error) {
	if seq > f.Head() {
		return "", errGone
	}
	id := ""
	covered := false
	f.View(func(t *transcript.Transcript) {
		id = contains(t.Turns, seq)
		covered = !t.Earlier || (len(t.Messages) > 0 && t.Messages[0].Seq <= seq)
	})
	if id != "" || covered {
		return found(id)
	}
	s, err := gather(ctx, f, func(s *stretch) bool {
		return contains(s.turns, seq) != "" || s.messages[0].Seq <= seq
	})
	if err != nil {
		return "", err
	}
	return found(contains(s.turns, seq))
}

func found(id string) (string, error) {
	if id == "" {
		return "", errGone
	}
	return id, nil
}

// running returns the turn that runs or waits for a person now; empty if there is none. Of turns that their upstream began, the first is
// returned if no other runs and foreign is set.
func running(f *feed.Feed, foreign bool) string {
	id := ""
	f.View(func(t *transcript.Transcript) {
		for _, u := range t.Turns {
			switch runs := u.State == transcript.Running || u.State == transcript.Waiting; {
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

func contains(turns []*transcript.Turn, seq int64) string {
	best := ""
	var since int64
	for _, t := range turns {
		if t.Parent != "" || t.Source != "" || !began(t) || seq < t.FirstSeq || (!t.Unfinished() && seq > t.EndSeq) {
			continue
		}
		// Of turns that waited beside each other the one that was there first ran first.
		if best == "" || t.FirstSeq < since {
			best, since = t.ID, t.FirstSeq
		}
	}
	return best
}

// began reports whether a turn runs or has run. One that still waits, or was stopped before it ran, has no place of its
// own in the log, since others ran meanwhile.
func began(t *transcript.Turn) bool { return t.State != transcript.Queued && t.StartedAt != 0 }

// position is where a reader of a turn stands: at the end of the turn, should the log have gone on.
func (s *state) position(f *feed.Feed) string {
	t, seq := &s.turn, s.seq
	if !began(t) {
		return ""
	}
	if !t.Unfinished() {
		seq = min(seq, t.EndSeq)
	}
	return string(f.CursorAt(seq))
}
