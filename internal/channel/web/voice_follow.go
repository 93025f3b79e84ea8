package web

import (
	"context"
	"strconv"

	"github.com/leat-dev/leat/internal/voice/wire"
	"github.com/leat-dev/leat/transcript"
)

// noticePrefix begins the ids under which messages that belong to no turn are spoken.
const noticePrefix = "notice-"

// narrator passes the frames of a room to a session as texts of turns. One goroutine uses it.
type narrator struct {
	speech wire.Speech
	// turn is the one that is being delivered. It is empty between two turns.
	turn string
	text []byte
}

// Follow implements [wire.Conversation]. It reads the room as the connections of /ws do, so what is spoken is what is
// shown. If the room has dropped frames that were not read, its state follows, which has the whole text of the turn
// that is being delivered. One that has ended meanwhile ends with its text in the log.
func (s spokenChat) Follow(ctx context.Context, speech wire.Speech, resume string) error {
	n := &narrator{speech: speech}
	at, frames, _ := s.room.state()
	for _, f := range frames {
		n.pass(f)
	}
	if resume != "" && resume != n.turn {
		if text, ok, err := s.endedText(ctx, resume); err != nil {
			return err
		} else if ok {
			speech.Update(resume, text, true)
		}
	}
	for {
		entries, changed, ok := s.room.after(at)
		if !ok { // it has dropped frames that were not read yet
			at, frames, _ = s.room.state()
			if n.turn != "" && (len(frames) == 0 || frames[0].Turn != n.turn) {
				text, ok, err := s.endedText(ctx, n.turn)
				if err != nil {
					return err
				}
				if ok {
					n.text = []byte(text)
				}
				n.finish()
			}
			for _, f := range frames {
				n.pass(f)
			}
			continue
		}
		for _, e := range entries {
			at = e.ID
			n.pass(e.frame)
		}
		if len(entries) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// endedText returns the text of a turn that has ended, if the conversation of the chat has it.
func (s spokenChat) endedText(ctx context.Context, turn string) (text string, ok bool, err error) {
	if s.c.source == nil {
		return "", false, nil
	}
	err = s.c.source.ViewChat(ctx, s.c.Name(), s.room.chat, func(t *transcript.Transcript) {
		tn := t.Turn(turn)
		if ok = tn != nil && !tn.Unfinished(); ok {
			text = t.Visible(turn)
		}
	})
	return text, ok, err
}

// pass passes a frame. Frames about tools, files and questions aren't spoken.
func (n *narrator) pass(f frame) {
	switch f.Type {
	case typeTyping:
		if f.Turn != n.turn {
			n.finish()
			n.turn, n.text = f.Turn, nil
			n.update(false)
		}
	case typeStream:
		n.text = append(n.text, f.Delta...)
		n.update(false)
	case typeReplace:
		n.text = []byte(f.Text)
		n.update(false)
	case typeDone:
		n.finish()
	case typeMessage:
		if f.Turn == "" {
			n.speech.Update(noticePrefix+strconv.FormatInt(f.ID, 10), f.Content, true)
			return
		}
		n.speech.Post(wire.TurnFailed(f.Turn, f.Content))
		n.finish()
	}
}

// update passes the text of the turn.
func (n *narrator) update(isEnded bool) {
	if n.turn != "" {
		n.speech.Update(n.turn, string(n.text), isEnded)
	}
}

// finish ends the turn.
func (n *narrator) finish() {
	n.update(true)
	n.turn, n.text = "", nil
}
