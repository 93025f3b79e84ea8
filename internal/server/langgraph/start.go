// How runs begin: with a message of the user, with the answer to a question, or from a checkpoint.

package langgraph

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/transcript"
)

// maxBody limits a request. Some pages send all messages of the thread with each one.
const maxBody = 16 << 20

// runRequest is the body of a request that begins a run, and also the parameters of run.start. The config's other keys, the context and the metadata
// are not read: agents have their own.
type runRequest struct {
	Assistant string          `json:"assistant_id"`
	Input     json.RawMessage `json:"input"`
	Command   *runCommand     `json:"command"`
	Config    struct {
		Configurable checkpointRef `json:"configurable"`
	} `json:"config"`
	Checkpoint   *checkpointRef  `json:"checkpoint"`
	CheckpointID string          `json:"checkpoint_id"`
	Multitask    string          `json:"multitask_strategy"`
	IfNotExists  string          `json:"if_not_exists"` // create or reject
	OnDisconnect string          `json:"on_disconnect"` // continue or cancel
	OnCompletion string          `json:"on_completion"` // keep or delete, for a run without a thread
	StreamMode   nameList        `json:"stream_mode"`
	AfterSeconds float64         `json:"after_seconds"`
	Webhook      string          `json:"webhook"`
	Before       json.RawMessage `json:"interrupt_before"`
	After        json.RawMessage `json:"interrupt_after"`
}

// runCommand is a command of LangGraph.
type runCommand struct {
	Resume json.RawMessage `json:"resume"`
	Update json.RawMessage `json:"update"`
	Goto   json.RawMessage `json:"goto"`
}

// nameList is a list of names. A single one need not be a list.
type nameList []string

// UnmarshalJSON implements [json.Unmarshaler].
func (l *nameList) UnmarshalJSON(b []byte) error {
	var name string
	if err := json.Unmarshal(b, &name); err == nil && name != "" {
		*l = nameList{name}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(l))
}

// stopsTurn reports whether the client wants its turn to be stopped when it disconnects.
func (in *runRequest) stopsTurn() (bool, error) {
	switch in.OnDisconnect {
	case "", "continue":
		return false, nil
	case "cancel":
		return true, nil
	}
	return false, server.Invalid("unknown value %q of on_disconnect; use continue or cancel", in.OnDisconnect)
}

// checkpoint returns the id of the checkpoint from which the run begins, or "" for the newest one.
//
// The older useStream sends the newest checkpoint that it knows with each message. It would remove what other pages have added since, so an object
// with a message doesn't count.
func (in *runRequest) checkpoint() string {
	if in.Checkpoint != nil && in.Checkpoint.ID != "" && !isPresent(in.Input) {
		return in.Checkpoint.ID
	}
	return cmp.Or(in.CheckpointID, in.Config.Configurable.ID)
}

// isPresent reports whether a JSON value is there and not null, false, or empty.
func isPresent(v json.RawMessage) bool {
	switch string(v) {
	case "", "null", "false", "[]", "{}", `""`:
		return false
	}
	return true
}

// check refuses what agents can't do, so that no client takes it for done.
func (in *runRequest) check() error {
	switch {
	case isPresent(in.Before) || isPresent(in.After):
		return unsupported("agents have no steps to interrupt before or after")
	case in.AfterSeconds > 0:
		return unsupported("a run can't begin later here")
	case in.Webhook != "":
		return unsupported("webhooks are configured in the gateway, not for a run")
	case in.OnCompletion == "delete":
		return unsupported("a run without a thread keeps its conversation here; delete it with DELETE /threads/ID")
	case in.Command != nil && (isPresent(in.Command.Update) || isPresent(in.Command.Goto)):
		return unsupported("a command can only resume here; agents have no state to update and no nodes to go to")
	}
	return nil
}

// runRef is a run that has begun.
type runRef struct {
	conversation, turn string
	// number is that of the operation with which the run begins: 0 for a turn's first run.
	number int64
}

// id returns the id of the run: that of the turn, and for a run that continues a turn also its number.
func (ref runRef) id() string { return runID(ref.turn, ref.number) }

// start begins a run in a conversation, which exists.
func (s *surface) start(ctx context.Context, p gateway.Principal, conversation, agent string, in *runRequest) (ref runRef, err error) {
	if in.Command != nil && len(in.Command.Resume) > 0 && string(in.Command.Resume) != "null" { // false is an answer
		return s.resume(ctx, p, conversation, in.Command.Resume)
	}
	m, err := questionIn(in.Input)
	if err != nil {
		return ref, err
	}
	// Of several runs that begin at once, each sees those before it: the strategy reject accepts one of them.
	unlock, err := s.starts.Lock(ctx, conversation)
	if err != nil {
		return ref, err
	}
	defer unlock()
	if err := s.makeRoom(ctx, p, conversation, in.Multitask); err != nil {
		return ref, err
	}
	if id := in.checkpoint(); id != "" {
		question, err := s.fork(ctx, p, conversation, id)
		if err != nil {
			return ref, err
		}
		if m == nil {
			m = question
		}
	}
	if m == nil {
		return ref, server.Invalid("the run has no message of the user; send one as the last of input.messages")
	}
	turn, err := s.chats.Send(ctx, p, conversation, gateway.Command{Agent: agent, Message: m})
	return runRef{conversation: conversation, turn: turn}, err
}

// makeRoom does with the unfinished turns of a conversation what the client wants. A turn that waits is not busy in LangGraph: a new message takes the
// place of the answer, so it is stopped. The default is that of LangGraph's platform.
func (s *surface) makeRoom(ctx context.Context, p gateway.Principal, conversation, strategy string) error {
	isBusy, isWaiting, before := false, false, ""
	err := s.gw.ViewTranscript(ctx, p, conversation, func(t *transcript.Transcript) bool {
		current := currentTurn(t)
		if isBusy = current != nil; isBusy {
			isWaiting, before = current.State == transcript.TurnWaiting, messageBefore(t, current.ID)
		}
		return true
	})
	if err != nil || !isBusy {
		return err
	}
	if isWaiting {
		_, err := s.chats.Stop(ctx, p, conversation)
		return err
	}
	switch strategy {
	case "", "enqueue":
		return nil
	case "reject":
		return server.Errorf(http.StatusConflict, gateway.ReasonUnfinished, "the thread is already running a task; wait until it is finished, or choose another multitask strategy")
	case "interrupt":
		_, err := s.chats.Stop(ctx, p, conversation)
		return err
	case "rollback":
		if _, err := s.chats.Stop(ctx, p, conversation); err != nil {
			return err
		}
		return s.chats.Truncate(ctx, p, conversation, before)
	}
	return server.Invalid("unknown multitask_strategy %q; use enqueue, reject, interrupt or rollback", strategy)
}

// messageBefore returns the id of the message before the one that a turn answers, or "".
func messageBefore(t *transcript.Transcript, turn string) (before string) {
	for _, m := range t.Messages {
		if m.StateTurn == turn || m.Turn == turn {
			return before
		}
		before = m.ID
	}
	return before
}

// fork removes what is after a checkpoint, since conversations have no branches. It returns the message of the user that is the last one there, and not
// answered, because the checkpoint is that at the beginning of its turn. The message is removed too, and sent again.
func (s *surface) fork(ctx context.Context, p gateway.Principal, conversation, checkpoint string) (question *gateway.CommandMessage, err error) {
	seq, err := checkpointSeq(checkpoint)
	if err != nil {
		return nil, err
	}
	var last, unanswered string // ids of messages
	err = s.gw.ViewTranscript(ctx, p, conversation, func(t *transcript.Transcript) bool {
		last, unanswered = "", ""
		for _, m := range t.Messages {
			turn := turnOf(t, m)
			if turn != nil && (turn.FirstSeq > seq || m.Turn != "" && turn.Independent() && seq < turn.EndSeq) {
				continue
			}
			if m.Role == event.User && turn != nil && (turn.EndSeq == 0 || seq < turn.EndSeq) {
				unanswered = m.ID
				break
			}
			last = m.ID
		}
		return !t.Earlier
	})
	if err != nil {
		return nil, err
	}
	if unanswered != "" {
		original, err := s.chats.Message(ctx, p, conversation, unanswered)
		if err != nil {
			return nil, err
		}
		if original != nil {
			question = &original.CommandMessage
		}
	}
	return question, s.chats.Truncate(ctx, p, conversation, last)
}
