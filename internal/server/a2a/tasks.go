// Tasks that exist: get, list, cancel, subscribe.

package a2a

import (
	"errors"
	"slices"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/transcript"
)

// taskParams are the params of the methods about one task.
type taskParams struct {
	ID     string `json:"id"`
	Length *int   `json:"historyLength"`
}

// snapshot returns a task as it is, or as it is when it has ended or waits for an answer.
func (c *call) snapshot(to target, isBlocking bool) (t task, err error) {
	v := c.view(to)
	err = c.follow(to, func(a *answer.Answer) error {
		current, err := v.status(a)
		if err != nil {
			return err
		}
		t = v.task(a, current)
		if !isBlocking || isOver(current.State) {
			return errEnough
		}
		return nil
	}, nil, nil)
	return t, err
}

// get returns a task with the message that it answers.
func (c *call) get() (any, error) {
	var in taskParams
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Length != nil && *in.Length < 0 {
		return nil, &rpcError{codeInvalidParams, "The historyLength must not be negative."}
	}
	to, err := c.find(in.ID, gateway.ActionRead)
	if err != nil {
		return nil, err
	}
	t, err := c.snapshot(to, false)
	if err != nil {
		return nil, err
	}
	if in.Length == nil || *in.Length > 0 {
		if t.History, err = c.history(to); err != nil {
			return nil, err
		}
	}
	if c.isOld {
		return t.old(), nil
	}
	return t, nil
}

// history returns the message that a task answers. What the agent has made is in the artifacts.
func (c *call) history(to target) ([]message, error) {
	_, turn, err := c.surface.gw.Turn(c.ctx(), c.principal, gateway.ActionRead, to.turn)
	if err != nil {
		return nil, err
	}
	original, err := c.surface.chats.Message(c.ctx(), c.principal, to.conversation, turn.Answers)
	if err != nil || original == nil {
		return nil, err
	}
	m := message{ID: original.ID, Context: to.context, Task: to.turn, Role: roleUser, Parts: []part{}}
	if original.Text != "" {
		m.Parts = append(m.Parts, textPart(original.Text))
	}
	for _, p := range original.Parts {
		switch {
		case p.Kind == event.KindMedia && p.Media != nil:
			m.Parts = append(m.Parts, filePart(p.Media, c.base))
		case p.Kind == event.KindData:
			m.Parts = append(m.Parts, part{Data: p.Data})
		}
	}
	return []message{m}, nil
}

// cancel stops a task.
func (c *call) cancel() (any, error) {
	var in taskParams
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	to, err := c.find(in.ID, gateway.ActionWrite)
	if err != nil {
		return nil, err
	}
	ack, err := server.Do(c.ctx(), c.surface.gw, c.principal, to.conversation, gateway.Command{Type: gateway.CommandStop, Turn: to.turn})
	if ack.AlreadyEnded {
		return nil, &rpcError{codeNotCancelable, "The task has ended already."}
	}
	if err != nil {
		return nil, err
	}
	t, err := c.snapshot(to, false)
	if err != nil {
		return nil, err
	}
	if c.isOld {
		return t.old(), nil
	}
	return t, nil
}

// subscribe streams a task again. One that has ended has nothing to stream, and is read by GetTask.
func (c *call) subscribe() (any, error) {
	return c.viewing(func() (any, error) {
		var in taskParams
		if err := c.decode(&in); err != nil {
			return nil, err
		}
		to, err := c.find(in.ID, gateway.ActionRead)
		if err != nil {
			return nil, err
		}
		_, turn, err := c.surface.gw.Turn(c.ctx(), c.principal, gateway.ActionRead, to.turn)
		if err != nil {
			return nil, err
		}
		if !turn.Unfinished() {
			return nil, &rpcError{codeUnsupported, "The task has ended; get it instead."}
		}
		return nil, c.stream(to)
	})
}

// maxTasks is the largest page of a list, and defaultTasks the usual one, as in the specification.
const (
	maxTasks     = 100
	defaultTasks = 50
)

// stateAny is the state that stands for none, and for all in a list.
const stateAny = "TASK_STATE_UNSPECIFIED"

// states are those by which a list can be limited. No task has the last two here.
var states = []string{"", stateAny, stateSubmitted, stateWorking, stateInput, stateCompleted, stateFailed, stateCanceled, "TASK_STATE_REJECTED", "TASK_STATE_AUTH_REQUIRED"}

// listParams are the params of ListTasks. A page token is the id of the last task of the page before.
type listParams struct {
	Context   string `json:"contextId"`
	State     string `json:"status"`
	Size      int    `json:"pageSize"`
	Token     string `json:"pageToken"`
	After     string `json:"statusTimestampAfter"` // RFC 3339
	Artifacts bool   `json:"includeArtifacts"`
}

// wants reports whether a task with a status is listed. Times are compared as times, because clients write them with other precisions and zones.
func (in *listParams) wants(s status) bool {
	if in.State != "" && in.State != stateAny && s.State != in.State {
		return false
	}
	after, err := time.Parse(time.RFC3339, in.After)
	if err != nil {
		return true // no time was given
	}
	at, err := time.Parse(time.RFC3339, s.Time)
	return err == nil && !at.Before(after)
}

// taskList is a page of tasks, the newest first.
type taskList struct {
	Tasks []task `json:"tasks"`
	Token string `json:"nextPageToken"`
	Size  int    `json:"pageSize"`
	Total int    `json:"totalSize"`
}

// list lists the tasks of one context. Tasks of all contexts are not listed: the gateway would have to read all conversations.
func (c *call) list() (any, error) {
	var in listParams
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Context == "" {
		return nil, &rpcError{codeInvalidParams, "ListTasks needs a contextId here."}
	}
	if in.Size == 0 {
		in.Size = defaultTasks
	}
	if in.Size < 1 || in.Size > maxTasks {
		return nil, &rpcError{codeInvalidParams, "The pageSize must be 1 to 100."}
	}
	if _, err := time.Parse(time.RFC3339, in.After); in.After != "" && err != nil {
		return nil, &rpcError{codeInvalidParams, "The statusTimestampAfter must be a time in RFC 3339."}
	}
	if !slices.Contains(states, in.State) {
		return nil, &rpcError{codeInvalidParams, "The status is unknown."}
	}
	page := taskList{Tasks: []task{}, Size: in.Size}
	conversation, isFound, err := c.surface.chats.Find(c.ctx(), c.principal, in.Context)
	if err != nil || !isFound {
		return page, err
	}
	var turns []*transcript.Turn
	var isFollowing bool // what follows the token, which is also found if its task has another state by now
	err = c.surface.gw.ViewTranscript(c.ctx(), c.principal, conversation, func(t *transcript.Transcript) bool {
		turns, page.Total, isFollowing = turns[:0], 0, in.Token == ""
		for _, turn := range slices.Backward(t.Turns) {
			if turn.Independent() && in.wants(statusOf(turn, "")) {
				page.Total++
				if isFollowing {
					copied := *turn
					turns = append(turns, &copied)
				}
			}
			isFollowing = isFollowing || turn.ID == in.Token
		}
		return !t.Earlier
	})
	if err != nil {
		return nil, err
	}
	if !isFollowing {
		return nil, &rpcError{codeInvalidParams, "The pageToken is unknown."}
	}
	if len(turns) > in.Size {
		turns = turns[:in.Size]
		page.Token = turns[in.Size-1].ID
	}
	for _, turn := range turns {
		to := target{conversation, turn.ID, in.Context}
		t := task{ID: turn.ID, Context: in.Context, Status: statusOf(turn, in.Context)}
		if in.Artifacts {
			if t, err = c.snapshot(to, false); errors.Is(err, gateway.ErrNotFound) {
				continue // removed meanwhile
			} else if err != nil {
				return nil, err
			}
		}
		page.Tasks = append(page.Tasks, t)
	}
	return page, nil
}
