package letta

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

// book records entries as the gateway does: none twice, and not those in own.
type book struct {
	t    *testing.T
	own  []string // ids of turns and messages
	sess json.RawMessage

	mu      sync.Mutex
	known   map[string]bool
	entries []agent.Entry
	cursor  json.RawMessage
}

const followed = "conversation"

func newBook(t *testing.T, s session, own ...string) *book {
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return &book{t: t, own: own, sess: raw, known: map[string]bool{}}
}

func (b *book) List(context.Context) ([]agent.Session, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return []agent.Session{{Conversation: followed, Session: b.sess, Cursor: b.cursor}}, nil
}

func (b *book) Next(ctx context.Context) (agent.Session, error) {
	<-ctx.Done()
	return agent.Session{}, ctx.Err()
}

func (b *book) Add(_ context.Context, _ string, entries []agent.Entry, cursor json.RawMessage) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range entries {
		if !b.known[e.Key] && !slices.Contains(b.own, e.Key) {
			b.known[e.Key] = true
			b.entries = append(b.entries, e)
		}
	}
	b.cursor = slices.Clone(cursor)
	return nil
}

// follow follows the conversation until the function that it returns is called.
func (b *book) follow(k *socketAgent) (end func()) {
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = k.Follow(ctx, b) // always returns the context's error
	}()
	end = func() { cancel(); <-done }
	b.t.Cleanup(end)
	return end
}

// ready waits until the session is followed.
func (b *book) ready() {
	b.t.Helper()
	eventually(b.t, "a cursor", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.cursor != nil
	})
}

// wait waits for so many entries and returns them.
func (b *book) wait(n int) []agent.Entry {
	b.t.Helper()
	eventually(b.t, "entries", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.entries) >= n
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.entries) > n {
		b.t.Fatalf("%d entries, want %d: %+v", len(b.entries), n, b.entries)
	}
	return slices.Clone(b.entries)
}

// speak sends another client's message to the conversation.
func speak(t *testing.T, conn *websocket.Conn, s session, id, text string) {
	t.Helper()
	raw, err := json.Marshal(input{
		request: request{Type: "input", ID: id, Runtime: s.runtime()},
		Payload: createMessage{Kind: "create_message", Messages: []userContent{{Role: "user", Content: text, ID: id}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Write(t.Context(), websocket.MessageText, raw); err != nil {
		t.Fatal(err)
	}
}

// observed observes the run of an entry.
func observed(t *testing.T, k *socketAgent, e agent.Entry) *stage {
	s := newStage(t)
	s.key, s.state = e.Key, e.Run.State
	in := s.input("")
	s.start(func(ctx context.Context) error { return k.Observe(ctx, in, s.state, s.out) })
	return s
}

func theirMessage(t *testing.T, e agent.Entry, text string) {
	t.Helper()
	if e.Message == nil || e.Message.Text != text || e.Message.Role != event.User || e.Source == "" || e.At.IsZero() {
		t.Errorf("the message is %+v (%+v), want %q", e, e.Message, text)
	}
}

var theirs = session{Agent: "agent-1", Conversation: ownConversation}

func TestAppServerFollowsAnotherClient(t *testing.T) {
	f := newAppServer(t)
	f.scripts = [][]string{{"One ", "gate theirs", "two."}}
	k := f.agent(map[string]string{"conversation": ownConversation})
	b := newBook(t, theirs)
	b.follow(k)
	b.ready()
	conn := f.watch(ownConversation)
	speak(t, conn, theirs, "theirs-1", "hello from there")
	all := b.wait(2)
	theirMessage(t, all[0], "hello from there")
	if run := all[1].Run; run == nil || run.Ops != nil || run.Answers != all[0].Key {
		t.Fatalf("the run is %+v", all[1])
	}
	s := observed(t, k, all[1])
	s.untilText("One ")
	// Leat is killed and restarted meanwhile: both the run and the turn continue.
	s = s.kill()
	in := s.input("")
	s.start(func(ctx context.Context) error { return k.Observe(ctx, in, s.state, s.out) })
	close(f.gate("theirs"))
	s.want(event.Completed, "", "One two.")
	b.wait(2)
}

func TestAppServerFollowsRunsDuringDowntime(t *testing.T) {
	f := newAppServer(t)
	f.scripts = [][]string{{"Theirs."}, {"Ours."}, {"think Hm. ", "And theirs again."}}
	k := f.agent(map[string]string{"conversation": ownConversation})
	b := newBook(t, theirs)
	end := b.follow(k)
	b.ready()
	end()
	conn := f.watch(ownConversation)
	turnOver := func() {
		f.until("idle", func() bool { c := f.convs[ownConversation]; return c.cancel == nil && !c.ending && len(c.past) > 0 })
	}
	speak(t, conn, theirs, "same-id", "first")
	f.until("answered", func() bool { return len(f.convs[ownConversation].past) == 2 })
	turnOver()
	turn := "01a20447-51d6-74af-8605-b4f68a856abf"
	b.own = []string{turn, "our-message"}
	speak(t, conn, theirs, turn+".our-message", "ours")
	f.until("answered", func() bool { return len(f.convs[ownConversation].past) == 4 })
	turnOver()
	speak(t, conn, theirs, "same-id", "second") // a client may use an id twice
	f.until("answered", func() bool { return len(f.convs[ownConversation].past) == 7 })
	turnOver()
	for range 2 { // reading twice must not add entries twice
		end = b.follow(k)
		all := b.wait(4)
		theirMessage(t, all[0], "first")
		theirMessage(t, all[2], "second")
		for i, text := range map[int]string{1: "Theirs.", 3: "And theirs again."} {
			s := newStage(t)
			s.mu.Lock()
			s.emit(all[i].Run.Ops)
			if got := s.fold.Visible(turnID); got != text || s.fold.Turn(turnID).Outcome != event.Completed {
				t.Errorf("run %d said %q and ended %s", i, got, s.fold.Turn(turnID).Outcome)
			}
			s.mu.Unlock()
		}
		end()
		b.mu.Lock()
		b.cursor = json.RawMessage(`{"session":{"agent":"agent-1","conversation":"default"}}`) // as before
		b.mu.Unlock()
	}
}

func TestAppServerFollowReconnects(t *testing.T) {
	f := newAppServer(t)
	f.scripts = [][]string{{"Theirs."}}
	k := f.agent(map[string]string{"conversation": ownConversation})
	b := newBook(t, theirs)
	b.follow(k)
	b.ready()
	f.mu.Lock()
	conns := f.conns
	for v := range f.convs[ownConversation].viewers {
		go func() { _ = v.conn.CloseNow() }()
	}
	f.mu.Unlock()
	f.until("the watch has reconnected", func() bool { return f.conns > conns })
	speak(t, f.watch(ownConversation), theirs, "theirs-1", "hello")
	all := b.wait(2)
	theirMessage(t, all[0], "hello")
}

// A run of another client that ended while the watch was disconnected is recorded before the answer to a later message of
// Leat.
func TestAppServerCatchesUpBeforeSending(t *testing.T) {
	f := newAppServer(t)
	f.scripts = [][]string{{"Theirs."}, {"Ours."}}
	k := f.agent(map[string]string{"conversation": ownConversation})
	k.times.retryDelay = limit // pause before the watch reconnects
	b := newBook(t, theirs)
	b.follow(k)
	b.ready()
	conn := f.watch(ownConversation)
	f.mu.Lock()
	for v := range f.convs[ownConversation].viewers {
		if v.leat {
			go func() { _ = v.conn.CloseNow() }()
		}
	}
	f.mu.Unlock()
	f.until("the watch is disconnected", func() bool { return len(f.convs[ownConversation].viewers) == 1 })
	speak(t, conn, theirs, "theirs-1", "hello")
	f.until("answered", func() bool { c := f.convs[ownConversation]; return c.cancel == nil && !c.ending && len(c.past) == 2 })
	s := newStage(t)
	s.session = b.sess
	s.run(k, "ours")
	s.untilText("Ours.")
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.entries) < 2 { // Leat's own entries may be included, because this book doesn't know them
		t.Fatalf("the conversation has %d entries when its answer comes, want 2", len(b.entries))
	}
	theirMessage(t, b.entries[0], "hello")
}

// The answer to a queued message is shown after the run that it waited for, even if that run's connection is slower.
func TestAppServerShowsRunsInOrder(t *testing.T) {
	f := newAppServer(t)
	f.scripts = [][]string{{"gate theirs", "Theirs."}, {"Ours."}}
	k := f.agent(map[string]string{"conversation": ownConversation})
	k.times.retryDelay = 100 * time.Millisecond // after a refused connection
	b := newBook(t, theirs)
	b.follow(k)
	b.ready()
	speak(t, f.watch(ownConversation), theirs, "theirs-1", "hello")
	run := b.wait(2)[1]
	ours := newStage(t)
	ours.session = b.sess
	ours.run(k, "ours")
	f.until("queued", func() bool { return len(f.convs[ownConversation].queue) == 1 })
	f.mu.Lock()
	f.refuse = repeated(fault{status: 503}, 2)
	f.mu.Unlock()
	other := observed(t, k, run)
	f.until("refused", func() bool { return len(f.refuse) == 1 })
	close(f.gate("theirs"))
	ours.untilText("Ours.")
	other.mu.Lock()
	if got := other.fold.Visible(turnID); got != "Theirs." {
		t.Errorf("when Leat's answer is shown, the other client's is %q", got)
	}
	other.mu.Unlock()
	other.want(event.Completed, "", "Theirs.")
	ours.want(event.Completed, "", "Ours.")
}

// If a message arrives while another client's tool runs, the tool's result still belongs to that client's run.
func TestAppServerToolResultAfterMessage(t *testing.T) {
	turn := "01a20447-51d6-74af-8605-b4f68a856abf"
	list := `{"messages":[
		{"id":"5","message_type":"assistant_message","content":"Ours."},
		{"id":"4","message_type":"tool_return_message","tool_call_id":"c1","status":"success","tool_return":"given"},
		{"id":"3","message_type":"user_message","otid":"` + turn + `.m","content":"ours"},
		{"id":"2","message_type":"approval_request_message","tool_call":{"tool_call_id":"c1","name":"Bash","arguments":"{}"}},
		{"id":"1","message_type":"user_message","otid":"theirs","content":"theirs"}]}`
	rows, _, err := parseRows([]byte(list))
	if err != nil {
		t.Fatal(err)
	}
	all := exchanges(rows, newTurnTracker())
	if len(all) != 2 || len(all[0].rows) != 2 || len(all[1].rows) != 1 {
		t.Fatalf("the exchanges are %+v", all)
	}
	ops, err := all[0].operations()
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emit(ops)
	if got := s.fold.Messages[0].Parts[0].Text(event.Output); got != "given" {
		t.Errorf("the tool's output is %q", got)
	}
}

func TestAppServerOtherMessageJoinsTurn(t *testing.T) {
	turns := newTurnTracker()
	take := func(frame string) {
		var f envelope
		if err := json.Unmarshal([]byte(frame), &f); err != nil {
			t.Fatal(err)
		}
		turns.observe(&f)
	}
	turn := "01a20447-51d6-74af-8605-b4f68a856abf"
	take(`{"type":"update_loop_status","loop_status":{"status":"WAITING_ON_INPUT"}}`)
	take(`{"type":"update_loop_status","loop_status":{"status":"EXECUTING_CLIENT_SIDE_TOOL","active_run_ids":["r1"],"client_message_ids_by_run_id":{"r1":["` + turn + `.m"]}}}`)
	take(`{"type":"stream_delta","delta":{"message_type":"user_message","otid":"theirs"}}`)
	rows := []*row{
		{ID: "1", Type: rowUser, Otid: turn + ".m", Content: json.RawMessage(`"ours"`)},
		{ID: "2", Type: "tool_return_message"},
		{ID: "3", Type: rowUser, Otid: "theirs", Content: json.RawMessage(`"theirs"`)},
		{ID: "4", Type: "assistant_message"},
	}
	all := exchanges(rows, turns)
	if len(all) != 1 || len(all[0].users) != 2 || len(all[0].rows) != 2 {
		t.Fatalf("%d exchanges, want one of two messages", len(all))
	}
	// A connection made while the turn runs learns of the shared run from the active run, or from the message's frame.
	for _, frames := range [][]string{
		{`{"type":"update_loop_status","loop_status":{"status":"PROCESSING_API_RESPONSE","active_run_ids":["r2"],"client_message_ids_by_run_id":{"r1":["` + turn + `.m"],"r2":["` + turn + `.m","theirs"]}}}`},
		{
			`{"type":"update_loop_status","loop_status":{"status":"EXECUTING_CLIENT_SIDE_TOOL","active_run_ids":["r1"],"client_message_ids_by_run_id":{"r1":["` + turn + `.m"]}}}`,
			`{"type":"stream_delta","delta":{"message_type":"user_message","otid":"theirs"}}`,
		},
	} {
		turns = newTurnTracker()
		for _, frame := range frames {
			take(frame)
		}
		if all = exchanges(rows, turns); len(all) != 1 {
			t.Errorf("%d exchanges after %s, want one of two messages", len(all), frames)
		}
	}
	// A connection made after the turn learns of it from the earlier runs.
	turns = newTurnTracker()
	take(`{"type":"update_loop_status","loop_status":{"status":"WAITING_ON_INPUT","active_run_ids":[],"client_message_ids_by_run_id":{"r1":["` + turn + `.m"],"r2":["` + turn + `.m","theirs"]}}}`)
	if all = exchanges(rows, turns); len(all) != 1 {
		t.Errorf("%d exchanges, want one of two messages", len(all))
	}
	w := &socketWatch{agent: newSocket(base{}), session: theirs, turns: turns, hasNoCursor: true, unclearSince: map[string]time.Time{}}
	entries, _, _ := w.gather(all, socketCursor{})
	if len(entries) < 2 || entries[0].Key != "m" || entries[1].Message == nil {
		t.Errorf("the entries are %+v", entries)
	}
}

// A server that is killed while a tool runs leaves a call without a result. The next message starts another run.
func TestAppServerMessageAfterKilledTool(t *testing.T) {
	turn := "01a20447-51d6-74af-8605-b4f68a856abf"
	call := &row{ID: "2", Type: "approval_request_message"}
	call.Call.ID = "c1"
	rows := []*row{
		{ID: "1", Type: rowUser, Otid: turn + ".m", Content: json.RawMessage(`"ours"`)},
		call,
		{ID: "3", Type: rowUser, Otid: "theirs", Content: json.RawMessage(`"theirs"`)},
		{ID: "4", Type: "assistant_message"},
	}
	known := newTurnTracker()
	var f envelope
	if err := json.Unmarshal([]byte(`{"type":"update_loop_status","loop_status":{"status":"PROCESSING_API_RESPONSE","active_run_ids":["r1"],"client_message_ids_by_run_id":{"r1":["theirs"]}}}`), &f); err != nil {
		t.Fatal(err)
	}
	known.observe(&f)
	for name, turns := range map[string]*turnTracker{"a connection within the run": known, "a connection after another restart": newTurnTracker()} {
		if all := exchanges(rows, turns); len(all) != 2 || len(all[1].rows) != 1 {
			t.Errorf("%s: %d exchanges, want two", name, len(all))
		}
	}
	// If the tool's result was stored before the kill, the status of the new run names the message that started it.
	rows[1] = &row{ID: "2", Type: rowReturn}
	if all := exchanges(rows, known); len(all) != 2 {
		t.Errorf("%d exchanges after a return, want two", len(all))
	}
}

// A tool that runs between subscribing and listing is in the frames and in the history, and is shown once.
func TestAppServerToolBeforeListIsShownOnce(t *testing.T) {
	f := newAppServer(t)
	f.scripts = [][]string{{"One ", "gate list", "run c1", "return c1", "gate back", "step", "two."}}
	k := f.agent(map[string]string{"conversation": ownConversation})
	b := newBook(t, theirs)
	b.follow(k)
	b.ready()
	speak(t, f.watch(ownConversation), theirs, "theirs-1", "hello")
	run := b.wait(2)[1]
	f.mu.Lock()
	f.listing = func() {
		close(f.gate("list"))
		f.until("the tool's return", func() bool {
			past := f.convs[ownConversation].past
			return past[len(past)-1]["message_type"] == rowReturn
		})
	}
	f.mu.Unlock()
	s := observed(t, k, run)
	s.untilText("One ")
	close(f.gate("back"))
	s.want(event.Completed, "", "One \n\ntwo.")
	tools := 0
	for _, m := range s.fold.Messages {
		for _, p := range m.Parts {
			if p.Kind == event.KindTool {
				tools++
				if got := p.Text(event.Output); got != "done" || p.State != event.PartDone {
					t.Errorf("the tool's output is %q and is %s", got, p.State)
				}
			}
		}
	}
	if tools != 1 {
		t.Errorf("%d tools, want one", tools)
	}
}
