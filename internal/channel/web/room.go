package web

import (
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/base/ratelimit"
)

const (
	// maxRoom is how many bytes of frames a room keeps for readers that are behind or resume. They are more than a
	// thousand frames. A room is cut to that size at each frame, and at least its newest frame stays.
	maxRoom = 512 << 10
	// maxEnded is how many turns a room remembers as delivered. A delivery is repeated at once or after a restart, so few are enough.
	maxEnded = 32
	// unstoredFor is how long a received message may be missing in the conversation. It is queued for the agent within milliseconds.
	unstoredFor = 5 * time.Second
)

// entry is a frame in a room.
type entry struct {
	frame
	at time.Time
	// key identifies a message that was not written in the chat, or is "". If the conversation has a message with that id, a history
	// that contains it replaces the frame.
	key string
}

// room has the newest frames of one chat, and the state of the turn that is being delivered. Only one delivery at a
// time may change the turn; the pipeline sees to that. order is locked before mu.
type room struct {
	chat string
	// order is held while a message of the visitor is stored, so that its frame precedes those of its answer.
	order sync.Mutex

	mu      sync.Mutex // protects the fields below
	entries []entry    // in ascending order of their numbers
	bytes   int        // size of entries
	// floor is the number up to which entries are gone, or were never there. A reader below it needs a history.
	floor int64
	// last is the number of the newest entry. In a new room it equals floor.
	last int64
	// changed is closed and replaced when an entry is added, which wakes all readers.
	changed chan struct{}
	// turn is the one that is being delivered. It is nil between two turns.
	turn     *turn
	endedIDs []string // ids of turns whose delivery has ended, oldest first
	keys     []string // of messages that were sent, oldest first
	media    mediaTable

	// The fields below are protected by the lock of the rooms.

	// users counts the connections and deliveries that use the room. Only a room without any may be dropped.
	users int
	// leftAt is when the last of them ended.
	leftAt time.Time
	// messages is the rate of what the visitor sends, over all connections. sockets counts these.
	messages ratelimit.Bucket
	sockets  int
}

// turn is what a room shows of a turn that is being delivered.
type turn struct {
	id, agent string
	// seq is the number of the last event of the conversation's log that is shown.
	seq  int64
	text []byte
	// tools has the newest frame of each call, in the order of their beginning.
	tools []frame
	// questions has those that are open.
	questions []frame
	files     []frame
}

// newRoom returns an empty room. The numbers of its entries begin at a multiple of the time, so they are higher than those of an
// earlier room of the chat. They are exact in JavaScript, whose integers have 53 bits.
func newRoom(chat string) *room {
	start := time.Now().UnixMilli() * 1000
	return &room{chat: chat, floor: start, last: start, changed: make(chan struct{})}
}

// append appends a frame. It is called with the lock.
func (r *room) append(f frame, key string) {
	r.last++
	f.ID = r.last
	r.entries = append(r.entries, entry{frame: f, at: time.Now(), key: key})
	r.bytes += f.size()
	for r.bytes > maxRoom && len(r.entries) > 1 {
		r.floor = r.entries[0].ID
		r.bytes -= r.entries[0].size()
		r.entries[0] = entry{} // releases its texts
		r.entries = r.entries[1:]
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// after returns the entries behind a number, and a channel that is closed when there are more. It returns false if the room
// can't know what the reader lacks. The entries are a copy, and their order is that of the numbers. An empty result
// with true means that the reader is up to date. A number from the future comes from an earlier room of the chat, or
// is invented.
func (r *room) after(number int64) ([]entry, <-chan struct{}, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if number < r.floor || number > r.last {
		return nil, nil, false
	}
	i := sort.Search(len(r.entries), func(i int) bool { return r.entries[i].ID > number })
	return slices.Clone(r.entries[i:]), r.changed, true
}

// position returns the number of the newest entry.
func (r *room) position() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// start returns the number before the oldest entry.
func (r *room) start() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.floor
}

// sendMessage adds a message that is not a part of a turn. A repetition with the same key is ignored.
func (r *room) sendMessage(content, key string) {
	r.order.Lock()
	defer r.order.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if key != "" {
		if slices.Contains(r.keys, key) {
			return
		}
		r.keys = remember(r.keys, key)
	}
	r.append(frame{Type: typeMessage, Content: content}, key)
}

// remember appends a value to a short list and drops the oldest if it is too long.
func remember(list []string, value string) []string {
	if list = append(list, value); len(list) > maxEnded {
		list = slices.Delete(list, 0, len(list)-maxEnded)
	}
	return list
}

// begin begins the delivery of a turn, or continues one that was interrupted. shown is the number of the last event that is shown
// already, or 0, and isNew is false if the turn was delivered before. It may wait for a message of the visitor that
// is being stored. The caller must call end, unless it gives up the delivery: then the next begin with the same id
// continues.
func (r *room) begin(id, agent string) (shown int64, isNew bool) {
	r.order.Lock()
	defer r.order.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.endedIDs, id) {
		return 0, false
	}
	if r.turn == nil || r.turn.id != id {
		r.turn = &turn{id: id, agent: agent}
		r.append(frame{Type: typeTyping, Agent: agent, Turn: id}, "")
	}
	return r.turn.seq, true
}

// advance records the number of the last event of the turn that is shown. begin returns it when the delivery is
// repeated.
func (r *room) advance(seq int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn.seq = seq
}

// end ends the delivery of the turn with a frame: stream_done, or a message with the error.
func (r *room) end(f frame) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f.Turn = r.turn.id
	r.endedIDs = remember(r.endedIDs, r.turn.id)
	r.turn = nil
	r.append(f, "")
}

// grow appends to the text of the turn.
func (r *room) grow(delta string) {
	if delta == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn.text = append(r.turn.text, delta...)
	r.append(frame{Type: typeStream, Delta: delta, Turn: r.turn.id}, "")
}

// setText makes a text that of the turn. If it doesn't begin with the text so far, readers get all of it again; the frames that it
// replaces are removed, because a reader that hasn't got them doesn't need them. Comparing costs as much as the text
// is long, so the frequent case uses grow.
func (r *room) setText(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.turn
	if n := len(t.text); len(text) >= n && text[:n] == string(t.text) {
		if delta := text[n:]; delta != "" {
			t.text = append(t.text, delta...)
			r.append(frame{Type: typeStream, Delta: delta, Turn: t.id}, "")
		}
		return
	}
	t.text = []byte(text)
	r.remove(func(f *frame) bool { return f.Turn == t.id && (f.Type == typeStream || f.Type == typeReplace) })
	r.append(frame{Type: typeReplace, Text: text, Turn: t.id}, "")
}

// confirm adds the frame that confirms a message of the visitor. A message that was sent again is confirmed again, because its client
// has perhaps not got the first confirmation. It is called with order held.
func (r *room) confirm(f frame) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.append(f, "")
}

// remove removes entries that a later one replaces. It is called with the lock.
func (r *room) remove(isReplaced func(*frame) bool) {
	r.entries = slices.DeleteFunc(r.entries, func(e entry) bool {
		if !isReplaced(&e.frame) {
			return false
		}
		r.bytes -= e.size()
		return true
	})
}

// setTool shows a tool call, if it has changed.
func (r *room) setTool(f frame) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f.Type, f.Turn = typeTool, r.turn.id
	i := slices.IndexFunc(r.turn.tools, func(o frame) bool { return o.Call == f.Call })
	switch {
	case i < 0:
		r.turn.tools = append(r.turn.tools, f)
	case r.turn.tools[i].State == f.State && r.turn.tools[i].Summary == f.Summary && r.turn.tools[i].Name == f.Name:
		return
	default:
		r.turn.tools[i] = f
	}
	r.append(f, "")
}

// setQuestions makes questions the open ones of the turn. Those that are no longer in the list are closed with a
// frame for each.
func (r *room) setQuestions(questions []frame) {
	r.mu.Lock()
	defer r.mu.Unlock()
	has := func(list []frame, token string) bool {
		return slices.ContainsFunc(list, func(f frame) bool { return f.Question == token })
	}
	for _, old := range r.turn.questions {
		if !has(questions, old.Question) {
			r.append(frame{Type: typeAnswered, Question: old.Question, Turn: r.turn.id}, "")
		}
	}
	for i := range questions {
		f := &questions[i]
		f.Type, f.Turn = typeQuestion, r.turn.id
		if !has(r.turn.questions, f.Question) {
			r.append(*f, "")
		}
	}
	r.turn.questions = questions
}

// addFile shows a file of the turn, the nth. Those that are shown already are ignored. n counts from 0, and the
// caller passes all files of a turn in the same order each time.
func (r *room) addFile(n int, f file) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n < len(r.turn.files) {
		return
	}
	media := frame{Type: typeMedia, Files: []file{f}, Turn: r.turn.id}
	r.turn.files = append(r.turn.files, media)
	r.append(media, "")
}

// state returns the number of the newest entry, the frames that show the running turn as it was then, and the received messages
// that the conversation may not have yet. All three belong to the same moment.
func (r *room) state() (number int64, frames []frame, unstored []entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.entries {
		if e.Type == typeUser && e.Message != "" && time.Since(e.at) < unstoredFor {
			unstored = append(unstored, e)
		}
	}
	if t := r.turn; t != nil {
		frames = append(frames, frame{Type: typeTyping, Agent: t.agent, Turn: t.id})
		if len(t.text) > 0 {
			frames = append(frames, frame{Type: typeReplace, Text: string(t.text), Turn: t.id})
		}
		frames = slices.Concat(frames, t.tools, t.files, t.questions)
	}
	return r.last, frames, unstored
}
