// The commands of people other than send: each checks its arguments against the committed state and is a separate commit, in the
// goroutine of the conversation's writer.

package gateway

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// commands carries out commands, in the writer of their conversation. Methods with a tx run in the writer's goroutine.
type commands struct{ *writer }

// stop ends a turn that is queued or running. Text that it has emitted so far stays; nothing that it emits later is
// seen. For a turn that has ended, the ack has AlreadyEnded. The agent's context ends after the commit.
func (w commands) stop(t *tx, turn string, p Principal) (Ack, error) {
	if turn == "" {
		return Ack{}, reject(ReasonInvalid, "stop: a turn is required")
	}
	ack := Ack{Turn: turn, Seq: w.head}
	if !slices.Contains(w.summary.Open, turn) {
		if !w.hasTurn(turn) {
			return Ack{}, reject(ReasonUnknown, "no turn %q here", turn)
		}
		ack.AlreadyEnded = true
		return ack, nil
	}
	// Three cases: the turn runs here; it is inside a turn that runs here, whose agent may still emit operations for it; or it is
	// queued and no agent knows of it.
	body := &event.Body{Outcome: event.Cancelled, Reason: "stopped", StoppedBy: p.Subject}
	switch tn := w.turns.around(turn); {
	case tn != nil && tn.id == turn:
		tn.end(t, body)
	case tn != nil:
		delete(tn.children, turn)
		tn.mapper.End(turn)
		fallthrough
	default:
		t.add(event.Event{Type: event.TurnEnd, Turn: turn, Body: body})
		w.closeTurn(t, turn)
		t.setKey(journalkey.TurnState(turn), nil, 0) // a pushed turn that was stopped in the queue has one
	}
	ack.Seq = t.lastSeq()
	return ack, nil
}

// answer closes an open request of a turn. The first answer wins: a later one is refused. An agent that waits in Ask gets the
// answer from there. Otherwise the answer is stored and delivered until the agent accepts it. A decision must be one
// of the request's options, or approve or deny.
func (w commands) answer(ctx context.Context, p Principal, c Command) (Ack, error) {
	a := event.Answer{ID: c.Request, Decision: c.Decision, Text: c.Text, Subject: p.Subject}
	return w.keyed(ctx, c, func(t *tx) (Ack, error) {
		if c.Turn == "" || c.Request == "" {
			return Ack{}, reject(ReasonInvalid, "answer: a turn and a request are required")
		}
		e := event.Event{Type: event.TurnResume, Turn: c.Turn, Body: &event.Body{Answer: &a}}
		if err := e.Validate(); err != nil {
			return Ack{}, reject(ReasonInvalid, "%v", err)
		}
		var hasEnded, isKnown bool
		var open *event.Request
		w.feed.View(func(tr *transcript.Transcript) {
			if turn := tr.Turn(c.Turn); turn != nil {
				isKnown, hasEnded = true, turn.State == transcript.TurnEnded
				for _, q := range turn.Requests {
					if q.ID == c.Request {
						open = &q.Request
					}
				}
			}
		})
		switch {
		case !isKnown && !w.hasTurn(c.Turn):
			return Ack{}, reject(ReasonUnknown, "no turn %q here", c.Turn)
		case hasEnded || !isKnown:
			return Ack{}, reject(ReasonAnswered, "the turn has ended")
		case open == nil:
			return Ack{}, reject(ReasonAnswered, "the request is not open: it was answered before, or does not exist")
		case a.Decision == "" && a.Text == "":
			return Ack{}, reject(ReasonInvalid, "answer: a decision or a text is required")
		case a.Decision != "" && a.Decision != event.Approve && a.Decision != event.Deny && !slices.Contains(open.Options, string(a.Decision)):
			return Ack{}, reject(ReasonInvalid, "answer: invalid decision %q: use %s", a.Decision, strings.Join(decisions(open), ", "))
		}
		tn := w.turns.around(c.Turn)
		if tn == nil {
			return Ack{}, reject(ReasonUnknown, "the turn is not running")
		}
		// If the agent waits in Ask, resolve passes the answer to it. Otherwise the answer must outlive a crash until the agent has
		// accepted it.
		isAwaited := tn.waiters[a.ID] != nil
		tn.add(t, []event.Event{e})
		if !isAwaited {
			if err := tn.setAnswer(t, storedAnswer{Answer: a}); err != nil {
				return Ack{}, err
			}
			t.afterCommit(func() { tn.runner.Answer(a) })
		}
		return Ack{Turn: c.Turn, Seq: t.lastSeq()}, nil
	})
}

// decisions lists the decisions that answer a request.
func decisions(r *event.Request) []string {
	if len(r.Options) > 0 {
		return r.Options
	}
	return []string{string(event.Approve), string(event.Deny)}
}

// inject adds a message that starts no turn, such as a note or a proactive message. The role is assistant, unless the
// message has another one.
func (w commands) inject(ctx context.Context, t *tx, p Principal, c Command) (Ack, error) {
	m, err := w.message(c, event.Assistant)
	if err != nil {
		return Ack{}, err
	}
	if c.isIDTaken || !w.isNewMessageID(m.Message) {
		return Ack{}, reject(ReasonConflict, "message id %q is taken", m.Message)
	}
	if err := t.reserve(p, quota.Need{Message: true, Bytes: w.core.limits.sizeOf(m)}); err != nil {
		return Ack{}, err
	}
	if err := w.core.attachments.Retain(ctx, Tx{t}, m.Body.Parts); err != nil {
		return Ack{}, err
	}
	t.edit().Updated = nowMillis()
	ack := Ack{Message: m.Message, Seq: t.addMessage(m, c)}
	w.entitle(t, p, &m)
	return ack, nil
}

// errTruncated is returned if another truncate was committed after the log was read.
var errTruncated = errors.New("gateway: another truncate came in between")

// truncate removes the messages after one. It is refused while a turn is unfinished. It is repeated as long as other truncates
// come in between.
func (w commands) truncate(ctx context.Context, c Command) (Ack, error) {
	for {
		ack, err := w.truncateAt(ctx, c)
		if !errors.Is(err, errTruncated) {
			return ack, err
		}
	}
}

// truncateAt tries a truncate once. If the error is errTruncated, another attempt can succeed. The log is read before the job
// is queued, because the message may be older than the feed's memory and reading a long log would block the writer.
// With KeepFiles the truncate can be undone for a while, so files and sessions are kept. Otherwise files that only
// the removed messages showed are removed before it returns, unless a message was added since the log was read.
func (w commands) truncateAt(ctx context.Context, c Command) (Ack, error) {
	// Everything that is computed from history holds only up to head, so the job checks what has changed since.
	history, head, err := w.readLog(ctx)
	if err != nil {
		return Ack{}, JournalError("truncate", err)
	}
	keepCount := 0
	if c.After != "" {
		keepCount = slices.IndexFunc(history.Messages, func(m *transcript.Message) bool { return m.ID == c.After }) + 1
	}
	deleted := len(history.Messages) - keepCount
	var filesDropped chan struct{} // closed when the files that only removed messages showed are removed
	ack, err := w.keyed(ctx, c, func(t *tx) (Ack, error) {
		switch {
		case t.current().Truncated > head:
			return Ack{}, errTruncated // the message may have been removed
		case c.After != "" && keepCount == 0: // checked after the key: a repetition succeeds even if the message is removed since
			return Ack{}, reject(ReasonUnknown, "no message %q here", c.After)
		}
		// A turn that has ended doesn't count even if its agent has not returned, because it emits nothing any more.
		if len(w.summary.Open) > 0 || slices.ContainsFunc(w.turns.active(), func(tn *turn) bool { return !tn.isOver.Load() }) {
			return Ack{}, reject(ReasonUnfinished, "a turn is unfinished; stop it first")
		}
		var sessions []journal.KeyValue
		if c.After == "" {
			if sessions, err = w.forgetSessions(ctx, t); err != nil {
				return Ack{}, err
			}
		}
		seq := t.add(event.Event{Type: event.ConversationTruncate, Message: c.After})
		s := t.edit()
		// Readers with an older cursor get a snapshot from now on, because their messages may be gone. The compactor then removes
		// the bytes from the disk.
		s.Truncated, s.Updated = seq, nowMillis()
		t.afterCommit(func() {
			if c.KeepFiles {
				w.core.undos.add(w.id, undo{truncate: seq, after: c.After, sessions: sessions})
			} else {
				w.core.undos.drop(w.id)
			}
			w.core.compactor.add(w.id, w.head)
		})
		deletedMessages, remainingMessages := history.Messages[keepCount:], history.Messages[:keepCount]
		switch {
		case w.head != head: // a message that was added since the log was read may show the files
		case c.KeepFiles:
			if err := w.core.attachments.Detach(ctx, Tx{t}, deletedMessages, remainingMessages); err != nil {
				return Ack{}, err
			}
		default:
			w.core.attachments.Release(Tx{t}, deletedMessages, remainingMessages)
			filesDropped = make(chan struct{})
			t.afterCommit(func() { close(filesDropped) })
		}
		return Ack{Seq: seq, Deleted: deleted}, nil
	})
	if err == nil {
		if filesDropped != nil {
			<-filesDropped // they are removed after the commit, by the writer
		}
		w.forgetRaw(ctx)
	}
	return ack, err
}

// update sets the title and metadata.
func (w commands) update(t *tx, p Principal, c Command) (Ack, error) {
	if c.Title == nil && len(c.Metadata) == 0 {
		return Ack{}, reject(ReasonInvalid, "update: a title or metadata are required")
	}
	if err := checkMeta(c.Title, c.Metadata); err != nil {
		return Ack{}, err
	}
	if err := t.reserve(p, quota.Need{Bytes: w.core.limits.metaSize(c.Title, c.Metadata)}); err != nil {
		return Ack{}, err
	}
	seq := t.add(event.Event{Type: event.ConversationUpdate, Body: &event.Body{Title: c.Title, Metadata: c.Metadata}})
	setMeta(t.edit(), c.Title, c.Metadata)
	return Ack{Seq: seq}, nil
}

// delete ends the conversation's turns, disconnects its readers, and removes everything that is stored of it. If condition
// isn't nil, it is called in the job, when no other command can change the summary any more; an error from it cancels the
// delete. committed is called when the delete is durable and will be completed, even after a crash.
func (w commands) delete(ctx context.Context, c Command, condition func(*journal.Summary) error, committed func()) (Ack, error) {
	var ack Ack
	ctx = context.WithoutCancel(ctx) // a delete that has begun is completed even if its caller has gone
	err := w.submit(ctx, func(t *tx) error {
		if condition != nil {
			if err := condition(t.current()); err != nil {
				return err
			}
		}
		for _, tn := range w.turns.active() {
			tn.end(t, &event.Body{Outcome: event.Cancelled, Reason: "conversation deleted"})
		}
		for _, turn := range slices.Clone(t.current().Open) {
			t.add(event.Event{Type: event.TurnEnd, Turn: turn, Body: &event.Body{Outcome: event.Cancelled, Reason: "conversation deleted"}})
			w.closeTurn(t, turn)
		}
		ack.Seq = t.add(event.Event{Type: event.ConversationDelete})
		// The mark makes the next start complete the delete if the process ends before the data is removed.
		t.setKey(journalkey.Deleting(w.id), []byte("1"), 0)
		t.terminal = true
		t.afterCommit(func() { w.kill() })
		return w.note(t, c, ack)
	})
	if err != nil {
		return ack, commandError(err)
	}
	// From here on the conversation is gone for all users. What follows removes data; if it fails, it is repeated later.
	committed()
	w.core.compactor.drop(w.id)
	if err := w.core.removals.finish(ctx, w.id); err != nil && !errors.Is(err, context.Canceled) {
		w.core.reopen.addDelete(w.id)
		return ack, JournalError("delete conversation", err)
	}
	return ack, nil
}

// message checks a command's message and returns its event.
func (w commands) message(c Command, role event.Role) (event.Event, error) {
	return messageEvent(c.Type, c.Message, role, w.core.settings().MaxMessage)
}

// entitle adds a title to a conversation that has none, from a message of its owner, in the message's commit. A guest's message
// makes no title, because the title would remain after the guest's messages are redacted. The title is derived once,
// and only if the configuration asks for titles.
func (w *writer) entitle(t *tx, p Principal, m *event.Event) {
	s := t.current()
	if !w.core.cfg.Titles || s.Title != "" || m.Body.Role != event.User || !p.Admin && p.Subject != s.Owner {
		return
	}
	title := titleOf(m.Body.Parts)
	if title == "" {
		return
	}
	t.add(event.Event{Type: event.ConversationUpdate, Body: &event.Body{Title: &title}})
	setMeta(t.edit(), &title, nil)
}
