package web

import (
	"context"
	"slices"
)

const (
	// lag is how many frames a reader may be behind before they are merged for it. Below that, each growth stays one
	// frame, so that a client can show the text as the agent wrote it.
	lag = 32
	// maxMerged is the length in bytes of a merged text. Many WebSocket clients refuse messages of more than 32 KiB by default.
	maxMerged = 16 << 10
)

// reader passes the frames of a room to one connection, at the connection's pace. One goroutine uses it.
type reader struct {
	room *room
	// at is the number of the last frame that was written.
	at int64
	// isPlain is set for a client that uses the seed's frames only.
	isPlain bool
	// history returns the messages of the conversation. If it is nil, only the frames in the room can be restored.
	history func(ctx context.Context) (*history, error)
	// write returns when the connection has taken the frame. Its error ends the reader.
	write func(ctx context.Context, f frame) error
	// inHistory has the ids of turns and messages that the history contains completely. Their frames are not written again.
	inHistory map[string]bool
}

// run writes frames until ctx ends or a write fails. It returns the cause of ctx, the error of a write or of the
// history, or errTooSlow. It holds no lock while it writes, so a slow client delays no other one.
func (rd *reader) run(ctx context.Context) error {
	for {
		entries, changed, ok := rd.room.after(rd.at)
		if !ok {
			if err := rd.restore(ctx); err != nil {
				return err
			}
			continue
		}
		end := rd.at
		if len(entries) > 0 {
			end = entries[len(entries)-1].ID
		}
		entries = slices.DeleteFunc(entries, func(e entry) bool { return rd.inHistory[e.key] || rd.inHistory[e.Turn] })
		if len(entries) > lag {
			entries = merge(entries)
		}
		for i := range entries {
			if err := rd.send(ctx, entries[i].frame); err != nil {
				return err
			}
		}
		if rd.at != end || len(entries) > 0 {
			rd.at = end // behind frames that were not written, too
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// send writes a frame, and moves the reader behind it.
func (rd *reader) send(ctx context.Context, f frame) error {
	if rd.isPlain {
		if err := rd.write(ctx, f.plain()); err != nil {
			return err
		}
	} else if err := rd.write(ctx, f); err != nil {
		return err
	}
	if f.ID != 0 {
		rd.at = f.ID
	}
	return nil
}

// merge joins consecutive growths of one text. Entries of other types stay where they are, and a merged entry has the
// number of its last part. It doesn't change the entries of the room, which other readers share.
func merge(entries []entry) []entry {
	var merged []entry
	for i := 0; i < len(entries); i++ {
		e := entries[i]
		if e.Type == typeStream {
			j, size := i+1, len(e.Delta)
			for ; j < len(entries) && entries[j].Type == typeStream && entries[j].Turn == e.Turn && size+len(entries[j].Delta) <= maxMerged; j++ {
				size += len(entries[j].Delta)
			}
			if j > i+1 {
				text := make([]byte, 0, size)
				for _, o := range entries[i:j] {
					text = append(text, o.Delta...)
				}
				e.Delta, e.ID = string(text), entries[j-1].ID
				i = j - 1
			}
		}
		merged = append(merged, e)
	}
	return merged
}

// restore replaces what the client has by the messages of the conversation and the running turn. The last of these frames has the
// number at which the reader continues: if the connection breaks before it, the client comes back with its old number and gets
// everything again. Messages that were received but aren't in the conversation yet are added to the history, so that
// a visitor who reconnects right after sending doesn't miss them.
func (rd *reader) restore(ctx context.Context) error {
	if rd.isPlain {
		return errTooSlow // it can't know a history
	}
	if rd.history == nil {
		rd.at = rd.room.start()
		return nil
	}
	// The room's state comes first. What is committed meanwhile is in the history and in later frames, and those are dropped.
	number, turn, unstored := rd.room.state()
	h, err := rd.history(ctx)
	if err != nil {
		return err
	}
	rd.inHistory = h.contains
	for _, e := range unstored {
		if !h.contains[e.Message] {
			h.contains[e.Message] = true
			h.messages = append(h.messages, historyMessage{Role: roleUser, Content: e.Content, Files: e.Files, Message: e.Message})
		}
	}
	frames := []frame{{Type: typeHistory, Messages: h.messages, Earlier: h.isCut}}
	for _, f := range turn {
		if !h.contains[f.Turn] {
			frames = append(frames, f)
		}
	}
	frames[len(frames)-1].ID = number
	rd.at = number // also if the last frame isn't written, so that frames of before are not sent after a history
	for _, f := range frames {
		if err := rd.send(ctx, f); err != nil {
			return err
		}
	}
	return nil
}
