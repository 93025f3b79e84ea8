// States of threads: what a graph would have stored.

package langgraph

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/transcript"
)

// threadState is the state of a thread at a checkpoint.
type threadState struct {
	Values     *values        `json:"values"`
	Next       []string       `json:"next"`
	Tasks      []task         `json:"tasks"`
	Metadata   stateMetadata  `json:"metadata"`
	Created    string         `json:"created_at"`
	Checkpoint *checkpointRef `json:"checkpoint"` // null if the thread is empty
	Parent     *checkpointRef `json:"parent_checkpoint"`
	Interrupts []interrupt    `json:"interrupts"`
}

// checkpointRef names a checkpoint.
type checkpointRef struct {
	Thread    string `json:"thread_id,omitempty"`
	Namespace string `json:"checkpoint_ns"`
	ID        string `json:"checkpoint_id"`
}

// stateMetadata says which step of the thread a state is. Clients compare steps.
type stateMetadata struct {
	Source string `json:"source"` // input or loop
	Step   int64  `json:"step"`
}

// task is the turn that runs, or waits.
type task struct {
	ID         string      `json:"id"`
	Name       string      `json:"name"`
	Path       []string    `json:"path"`
	Error      *string     `json:"error"`
	Interrupts []interrupt `json:"interrupts"`
	Checkpoint *struct{}   `json:"checkpoint"`
	State      *struct{}   `json:"state"`
}

// taskID returns the id of the task of a view that is busy. It differs from one checkpoint to the next.
func taskID(v *view) string { return node + "-" + checkpointID(v.seq) }

// checkpointID returns the id of the checkpoint at a seq. Ids sort as texts, which is how clients find out which one is newer.
func checkpointID(seq int64) string { return fmt.Sprintf("%016x", seq) }

// checkpointSeq returns the seq of a checkpoint.
func checkpointSeq(id string) (int64, error) {
	seq, err := strconv.ParseInt(id, 16, 64)
	if err != nil || len(id) != 16 {
		return 0, notFound("there is no checkpoint %q", id)
	}
	return seq, nil
}

// stateOf returns a view as the state of a thread.
func stateOf(thread string, v *view) *threadState {
	st := &threadState{
		Values: &values{Messages: emptyList(v.messages)}, Next: []string{}, Tasks: []task{}, Created: timeOf(v.at),
		Metadata: stateMetadata{"loop", v.seq}, Interrupts: emptyList(v.interrupts),
	}
	if len(v.messages) > 0 {
		st.Checkpoint = &checkpointRef{Thread: thread, ID: checkpointID(v.seq)}
	}
	if v.parent > 0 {
		st.Parent = &checkpointRef{Thread: thread, ID: checkpointID(v.parent)}
	}
	if v.status == statusBusy || v.status == statusInterrupted {
		st.Next = []string{node}
		st.Tasks = []task{{ID: taskID(v), Name: node, Path: []string{"__pregel_pull", node}, Interrupts: emptyList(v.interrupts)}}
	}
	return st
}

func (s *surface) state(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	id, err := s.open(r, p)
	if err != nil {
		return err
	}
	v, err := s.view(r.Context(), p, id)
	if err != nil {
		return err
	}
	return server.Respond(w, stateOf(r.PathValue("id"), v), nil)
}

// historyQuery is the body of a request for past states.
type historyQuery struct {
	Limit  *int `json:"limit"`
	Before struct {
		ID           string        `json:"checkpoint_id"`
		Configurable checkpointRef `json:"configurable"`
	} `json:"before"`
	Checkpoint checkpointRef   `json:"checkpoint"`
	Metadata   json.RawMessage `json:"metadata"`
}

// history lists the states of a thread, the newest first: for each turn those at its end and at its beginning.
//
// Pages find there which checkpoint is before a message, to edit it or to have it answered again. There are no graphs inside others.
func (s *surface) history(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var q historyQuery
	if err := server.Decode(r, &q); err != nil {
		return err
	}
	id, err := s.open(r, p)
	if err != nil {
		return err
	}
	list := []*threadState{}
	if q.Checkpoint.Namespace != "" {
		return server.Respond(w, list, nil)
	}
	before := q.Before.ID
	if before == "" {
		before = q.Before.Configurable.ID
	}
	err = s.gw.ViewTranscript(r.Context(), p, id, func(t *transcript.Transcript) bool {
		list = list[:0]
		size := 0
		for _, v := range viewsOf(t) {
			// Each state has all messages before it, so a long thread would be sent many times.
			if size += sizeOf(v.messages); size > maxState && len(list) > 0 {
				break
			}
			v.messages = newest(v.messages)
			if st := stateOf(r.PathValue("id"), v); st.Checkpoint != nil && (before == "" || st.Checkpoint.ID < before) {
				list = append(list, st)
			}
		}
		return !t.Earlier
	})
	return server.Respond(w, pageOf(list, q.Limit, 0), err)
}

// viewsOf returns the views of a thread at its checkpoints, the newest first.
func viewsOf(t *transcript.Transcript) []*view {
	list := []*view{viewOf(t)}
	current := currentTurn(t)
	for _, turn := range slices.Backward(t.Turns) {
		if !turn.Independent() || current != nil && turn.FirstSeq > current.FirstSeq {
			continue
		}
		pre := preludeOf(t, turn.ID)
		if turn.EndSeq > 0 && (current != nil || turn != chats.LastTurn(t)) { // else it is the first view
			list = append(list, &view{messages: pre.with(messagesOf(t, turn.ID), true), status: statusIdle, seq: turn.EndSeq, at: turn.EndedAt, parent: turn.FirstSeq})
		}
		list = append(list, &view{messages: pre.messages, status: statusIdle, seq: turn.FirstSeq, at: max(turn.QueuedAt, turn.StartedAt), parent: pre.parent})
	}
	return list
}

// sizeOf returns about how many bytes messages have.
func sizeOf(list []message) (size int) {
	for i := range list {
		size += list[i].size()
	}
	return size
}

// size returns about how many bytes a message has.
func (m *message) size() int {
	size := len(m.Content)
	for _, c := range m.ToolCalls {
		size += len(c.Args)
	}
	return size
}
