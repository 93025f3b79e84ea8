// Threads.

package langgraph

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/journal"
)

// metadataThread is the key of a conversation's metadata with the id that the client gave the thread. Lists contain it, so that the client finds its
// thread there.
const metadataThread = "langgraph_thread_id"

// threadInfo is a thread as clients get it.
type threadInfo struct {
	ID         string                     `json:"thread_id"`
	Created    string                     `json:"created_at"`
	Updated    string                     `json:"updated_at"`
	Metadata   map[string]json.RawMessage `json:"metadata"`
	Config     struct{}                   `json:"config"`
	Status     string                     `json:"status"`
	Values     *values                    `json:"values"`
	Interrupts map[string][]interrupt     `json:"interrupts"` // by the id of their task
}

// values is the state of a thread as a graph has it.
type values struct {
	Messages   []message   `json:"messages"`
	Interrupts []interrupt `json:"__interrupt__,omitempty"` // in a stream only
}

// threadID returns the id under which the client knows a conversation.
func threadID(c *journal.Summary) string {
	var id string
	if json.Unmarshal(c.Metadata[metadataThread], &id) == nil && id != "" { // else it was begun elsewhere
		return id
	}
	return c.ID
}

// metadataOf returns the metadata of a conversation as that of a thread. Pages show the title in lists of threads, and filter by the graph.
func metadataOf(c *journal.Summary) map[string]json.RawMessage {
	m := map[string]json.RawMessage{}
	for k, v := range c.Metadata {
		if k != metadataThread {
			m[k] = v
		}
	}
	if _, isTaken := m["title"]; c.Title != "" && !isTaken {
		m["title"] = jsonOf(c.Title)
	}
	if _, isTaken := m["graph_id"]; c.Agent != "" && !isTaken {
		m["graph_id"], m["assistant_id"] = jsonOf(c.Agent), jsonOf(c.Agent)
	}
	return m
}

// infoOf returns a conversation as a thread.
func infoOf(c *journal.Summary, v *view) threadInfo {
	t := threadInfo{
		ID: threadID(c), Created: timeOf(c.Created), Updated: timeOf(c.Updated), Metadata: metadataOf(c), Status: statusIdle, Interrupts: map[string][]interrupt{},
	}
	switch {
	case v != nil:
		t.Status, t.Values = v.status, &values{Messages: emptyList(v.messages)}
		if len(v.interrupts) > 0 {
			t.Interrupts[taskID(v)] = v.interrupts
		}
	case len(c.WaitingTurns) > 0:
		t.Status = statusInterrupted
	case len(c.Open) > 0:
		t.Status = statusBusy
	}
	return t
}

// emptyList returns a list that is never null in JSON.
func emptyList[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// open returns the conversation of the thread in a request's path.
func (s *surface) open(r *http.Request, p gateway.Principal) (string, error) {
	id, isFound, err := s.chats.Find(r.Context(), p, r.PathValue("id"))
	if err == nil && !isFound {
		err = notFound("thread not found")
	}
	return id, err
}

// readThread reads a conversation as a thread with its state.
func (s *surface) readThread(ctx context.Context, p gateway.Principal, conversation string) (t threadInfo, err error) {
	c, err := s.gw.Conversation(ctx, p, gateway.ActionRead, conversation)
	if err != nil {
		return t, err
	}
	v, err := s.view(ctx, p, conversation)
	if err != nil {
		return t, err
	}
	return infoOf(&c, v), nil
}

// newThread is the body of a request that creates a thread.
type newThread struct {
	ID         string                     `json:"thread_id"`
	Metadata   map[string]json.RawMessage `json:"metadata"`
	IfExists   string                     `json:"if_exists"` // raise, or do_nothing
	Supersteps []json.RawMessage          `json:"supersteps"`
}

// createThread creates a conversation. Its agent is that of its first run, unless the metadata names a graph.
func (s *surface) createThread(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var body newThread
	if err := server.Decode(r, &body); err != nil {
		return err
	}
	if len(body.Supersteps) > 0 {
		return unsupported("a thread can't begin with supersteps here")
	}
	agent := ""
	var graph string
	if json.Unmarshal(body.Metadata["graph_id"], &graph) == nil && graph != "" { // else none is named
		var err error
		if agent, err = s.agentOf(p, graph); err != nil {
			return err
		}
	}
	id, isNew, err := s.createConversation(r.Context(), p, body.ID, agent, body.Metadata)
	switch {
	case err != nil:
		return err
	case !isNew && body.IfExists != "do_nothing":
		return server.Errorf(http.StatusConflict, server.ReasonExists, "the thread exists already; use if_exists: do_nothing to get it")
	}
	t, err := s.readThread(r.Context(), p, id)
	return server.Respond(w, t, err)
}

// createConversation returns the conversation of a thread, and creates it if it is new. Without an id it is always new, and the thread has the
// conversation's id.
func (s *surface) createConversation(ctx context.Context, p gateway.Principal, thread, agent string, metadata map[string]json.RawMessage) (id string, isNew bool, err error) {
	o := gateway.CreateOptions{Agent: agent, Metadata: map[string]json.RawMessage{}}
	for k, v := range metadata {
		if string(v) != "null" {
			o.Metadata[k] = v
		}
	}
	if thread == "" {
		ctx, cancel := server.CommandContext(ctx)
		defer cancel()
		c, _, err := s.gw.Create(ctx, p, o)
		return c.ID, true, err
	}
	if err := event.CheckID("thread_id", thread); err != nil {
		return "", false, err
	}
	o.Metadata[metadataThread] = jsonOf(thread)
	return s.chats.Create(ctx, p, thread, o)
}

func (s *surface) thread(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	id, err := s.open(r, p)
	if err != nil {
		return err
	}
	t, err := s.readThread(r.Context(), p, id)
	return server.Respond(w, t, err)
}

// updateThread changes the metadata. A title is also that of the conversation.
func (s *surface) updateThread(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var body struct {
		Metadata map[string]json.RawMessage `json:"metadata"`
	}
	if err := server.Decode(r, &body); err != nil {
		return err
	}
	id, err := s.open(r, p)
	if err != nil {
		return err
	}
	delete(body.Metadata, metadataThread)
	if len(body.Metadata) > 0 {
		c := gateway.Command{Type: gateway.CommandUpdate, Metadata: body.Metadata}
		var title string
		if json.Unmarshal(body.Metadata["title"], &title) == nil && title != "" { // else the title stays as it is
			c.Title = &title
			delete(body.Metadata, "title")
		}
		if _, err := server.Do(r.Context(), s.gw, p, id, c); err != nil {
			return err
		}
	}
	t, err := s.readThread(r.Context(), p, id)
	return server.Respond(w, t, err)
}

// threadQuery is the body of a search for threads.
type threadQuery struct {
	Metadata  map[string]json.RawMessage `json:"metadata"`
	IDs       []string                   `json:"ids"`
	Status    string                     `json:"status"`
	Limit     *int                       `json:"limit"`
	Offset    int                        `json:"offset"`
	SortOrder string                     `json:"sort_order"`
}

// maxListed limits how many conversations a search reads. LangGraph's own limit of a page is 1,000.
const maxListed = 1000

// searchThreads lists conversations, the newest first. Their states are not read, so the values of a thread are null: a page with ten threads would
// load ten conversations.
func (s *surface) searchThreads(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var q threadQuery
	if err := server.Decode(r, &q); err != nil {
		return err
	}
	list, err := s.gw.List(r.Context(), p, nil, maxListed)
	if err != nil {
		return err
	}
	matches := []threadInfo{}
	for i := range list {
		if list[i].Tenant != p.Tenant || list[i].Owner != p.Subject {
			continue // shared with the caller, and so not a thread
		}
		if t := infoOf(&list[i], nil); q.matches(&t) {
			matches = append(matches, t)
		}
	}
	if q.SortOrder == "asc" {
		slices.Reverse(matches)
	}
	return server.Respond(w, pageOf(matches, q.Limit, q.Offset), nil)
}

// matches reports whether a thread is what the query looks for.
func (q *threadQuery) matches(t *threadInfo) bool {
	if q.Status != "" && q.Status != t.Status || len(q.IDs) > 0 && !slices.Contains(q.IDs, t.ID) {
		return false
	}
	for k, v := range q.Metadata {
		if !isSameJSON(t.Metadata[k], v) {
			return false
		}
	}
	return true
}

// isSameJSON reports whether two values are equal. Clients format them differently.
func isSameJSON(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	return string(jsonOf(x)) == string(jsonOf(y))
}

// deleteThread deletes the conversation.
func (s *surface) deleteThread(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	id, err := s.open(r, p)
	if err != nil {
		return err
	}
	if _, err := server.Do(r.Context(), s.gw, p, id, gateway.Command{Type: gateway.CommandDelete}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
