// A live connection over a WebSocket: several conversations, commands, and resumption after a cut.

package leat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// liveSilence is the longest time without a frame before a connection counts as dead. The gateway sends its status every 5 s.
const liveSilence = 20 * time.Second

// maxLive is the limit of a live event, in bytes. The gateway's events are much shorter.
const maxLive = 4 << 20

// LiveOptions are the options of [Client.Live]. All fields are optional.
type LiveOptions struct {
	// ClientID identifies the program to the gateway, for events that are addressed to one program, such as a terminal's output.
	ClientID string
	// After is the id of the last signal that the program has processed, such as evt-42. Run delivers the later ones first. If it is
	// empty, Run begins with the last 120 signals.
	After string
	// OnDrop, if set, is called with each frame of Send that newer frames pushed out of the queue.
	OnDrop func(frame json.RawMessage)
	// OnDisconnect and Hurry are those of StreamOptions.
	OnDisconnect func(err error, next time.Duration)
	Hurry        <-chan struct{}
}

// Live follows events outside of conversations: the state of the default agent, signals of turns and other programs, and proactive
// messages of agents (docs/eliza.md, "Live events"). Its methods may be called from several goroutines.
type Live struct {
	c *Client
	o LiveOptions
	q *liveQueue
}

// Live returns a Live that connects when Run is called.
func (c *Client) Live(o LiveOptions) *Live { return &Live{c: c, o: o, q: newLiveQueue(o.OnDrop)} }

// SetActive tells the gateway which conversation the user is viewing, or "" for none. It is sent again on each new connection.
func (l *Live) SetActive(conversation string) {
	frame := struct {
		Type         string  `json:"type"`
		Conversation *string `json:"conversationId"`
	}{"active-conversation", &conversation}
	if conversation == "" {
		frame.Conversation = nil
	}
	b, err := json.Marshal(frame)
	if err != nil {
		panic(err) // can't happen: strings always have a JSON form
	}
	l.q.setActive(b)
}

// Send sends a control frame as JSON, or queues it until there is a connection. The queue has room for 32 frames; a newer frame then
// drops the oldest.
func (l *Live) Send(frame any) error {
	b, err := json.Marshal(frame)
	if err != nil {
		return fmt.Errorf("leat: encode frame: %w", err)
	}
	l.q.add(control{frame: b})
	return nil
}

// Run connects and calls fn with each event, until fn returns an error; it returns that error, or nil for ErrStop. After a disconnect it
// reconnects and continues after the last signal. If the gateway no longer has some signals, fn gets an event replay-gap. The other
// errors are those of [Client.Stream]. Only one Run may be active at a time.
func (l *Live) Run(ctx context.Context, fn func(*LiveEvent) error) error {
	r := reconnector{client: l.c, silence: errLiveSilence, onDisconnect: l.o.OnDisconnect, hurry: l.o.Hurry}
	// The gateway has accepted the token when it sends an event, which an open connection alone doesn't show.
	return r.run(ctx, func() (isAccepted bool, err error) { return l.connect(ctx, fn) })
}

var errLiveSilence = fmt.Errorf("no frame received for %v", liveSilence)

// connect reads one connection to its end, and never returns a nil error. began is true if the gateway accepted the token.
//
// Queued frames are sent by a second goroutine, which is started after the first event and has ended when connect returns. A failed write
// ends the connection. The position of the next connection advances only after fn has accepted a signal, so no signal is skipped.
func (l *Live) connect(ctx context.Context, fn func(*LiveEvent) error) (began bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(liveSilence, func() { cancel(errLiveSilence) })
	defer watch.Stop()
	conn, err := l.dial(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(maxLive)
	writerDone := make(chan struct{})
	for {
		_, b, err := conn.Read(ctx)
		watch.Reset(liveSilence)
		if err != nil {
			return began, l.disconnectError(ctx, err)
		}
		e, err := liveEvent(b)
		if err != nil {
			return began, err
		}
		if !began {
			began = true // the gateway sends the first status after it has accepted the token
			go func() {
				defer close(writerDone)
				if err := l.q.flush(ctx, conn); err != nil {
					cancel(err)
				}
			}()
			defer func() { cancel(nil); <-writerDone }()
		}
		if err := fn(e); err != nil {
			return began, &ownError{err}
		}
		if e.Signal != nil {
			l.o.After = e.Signal.EventID
		}
	}
}

// dial opens a connection that continues after the last signal delivered. Errors are classified like those of a request: an [*Error] if the
// gateway responded with a status, an ownError if the URL is invalid, which ends Run.
func (l *Live) dial(ctx context.Context) (*websocket.Conn, error) {
	q := query(map[string]string{"clientId": l.o.ClientID, "lastEventId": l.o.After})
	req, err := l.c.request(ctx, http.MethodGet, "/ws?"+q.Encode(), nil)
	switch {
	case errors.Is(err, ErrToken):
		return nil, err
	case err != nil:
		return nil, &ownError{err}
	}
	conn, res, err := websocket.Dial(ctx, req.URL.String(), &websocket.DialOptions{HTTPClient: l.c.client(), HTTPHeader: req.Header})
	if err == nil {
		return conn, nil
	}
	if res != nil && res.StatusCode != http.StatusSwitchingProtocols {
		return nil, errorOf(res)
	}
	return nil, l.disconnectError(ctx, err)
}

// disconnectError wraps the reason why a connection ended. The gateway closes a connection with the status policy violation if its token is
// refused or has expired; that becomes an [*Error] with status 401, so that Run renews the token.
func (l *Live) disconnectError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	if closed, ok := errors.AsType[websocket.CloseError](err); ok && closed.Code == websocket.StatusPolicyViolation {
		return &Error{Message: closed.Reason, Reason: reasonExpired, Status: http.StatusUnauthorized}
	}
	return fmt.Errorf("leat: connection lost: %w", err)
}

// LiveEvent is one event. Only the field for its Type and Raw are set. For types that this client doesn't know, only Raw is set.
type LiveEvent struct {
	Type string

	Status       *LiveStatus       // status
	Signal       *LiveSignal       // agent_event, heartbeat_event, training_event
	Proactive    *LiveProactive    // proactive-message
	Conversation *LiveConversation // conversation-updated
	Read         *LiveRead         // conversation-read
	Deleted      string            // conversation-deleted: its id
	Reasons      []string          // restart-required
	Gap          *LiveGap          // replay-gap
	MissedFrames int64             // resync: frames were lost, so reload what is displayed

	// Raw is the received JSON.
	Raw json.RawMessage
}

// LiveStatus is the state of the default agent.
type LiveStatus struct {
	State     string   `json:"state"`
	Agent     string   `json:"agentName"`
	Model     string   `json:"model"`
	StartedAt int64    `json:"startedAt"` // epoch milliseconds
	Uptime    int64    `json:"uptime"`    // milliseconds; of a connection's first status
	Pending   bool     `json:"pendingRestart"`
	Reasons   []string `json:"pendingRestartReasons"`
}

// LiveSignal is the envelope of the events that the gateway stores and replays after a disconnect.
type LiveSignal struct {
	EventID string          `json:"eventId"`
	Time    int64           `json:"ts"` // epoch milliseconds
	Run     string          `json:"runId"`
	Seq     *int64          `json:"seq"` // within the run
	Stream  string          `json:"stream"`
	Session string          `json:"sessionKey"`
	Agent   string          `json:"agentId"`
	Room    string          `json:"roomId"`  // the conversation
	Payload json.RawMessage `json:"payload"` // an object
}

// LiveProactive is a message that an agent sent without being asked.
type LiveProactive struct {
	Conversation string `json:"conversationId"`
	Message      struct {
		ID     string `json:"id"`
		Role   string `json:"role"`
		Text   string `json:"text"`
		Time   int64  `json:"timestamp"` // epoch milliseconds
		Source string `json:"source"`
	} `json:"message"`
}

// LiveConversation is a change of a conversation's properties.
type LiveConversation struct {
	ID      string    `json:"id"`
	Title   string    `json:"title"`
	Created time.Time `json:"createdAt"`
	Updated time.Time `json:"updatedAt"`
	// IsWaiting is as in Conversation. Pinned and Archived are from the metadata.
	IsWaiting bool `json:"waiting,omitempty"`
	Pinned    bool `json:"pinned,omitempty"`
	Archived  bool `json:"archived,omitempty"`
}

// LiveRead is the position up to which the user has read a conversation, on any device.
type LiveRead struct {
	Conversation string `json:"conversationId"`
	Unread       bool   `json:"unread"`
	Seq          int64  `json:"read"`
}

// LiveGap reports that the gateway no longer has the signals after After. First is the next available signal, or empty.
type LiveGap struct {
	After       string `json:"after"`
	FirstSignal string `json:"first"`
}

// liveEvent decodes a frame. The type decides which field of the event is set; an unknown type isn't an error, because a newer
// gateway may send it.
func liveEvent(b []byte) (*LiveEvent, error) {
	e := &LiveEvent{Raw: b}
	var head struct {
		Type         string            `json:"type"`
		Reasons      []string          `json:"reasons"`
		MissedFrames int64             `json:"missed"`
		Conversation *LiveConversation `json:"conversation"`
		ID           string            `json:"conversationId"`
	}
	err := json.Unmarshal(b, &head)
	into := func(v any) {
		if err == nil {
			err = json.Unmarshal(b, v)
		}
	}
	switch e.Type = head.Type; {
	case e.Type == "status":
		into(&e.Status)
	case strings.HasSuffix(e.Type, "_event"):
		into(&e.Signal)
	case e.Type == "proactive-message":
		into(&e.Proactive)
	case e.Type == "conversation-read":
		into(&e.Read)
	case e.Type == "replay-gap":
		into(&e.Gap)
	case e.Type == "conversation-updated":
		e.Conversation = head.Conversation
	case e.Type == "conversation-deleted":
		e.Deleted = head.ID
	case e.Type == "restart-required":
		e.Reasons = head.Reasons
	case e.Type == "resync":
		e.MissedFrames = head.MissedFrames
	}
	if err != nil {
		return nil, fmt.Errorf("%w: live event: %w", ErrProtocol, err)
	}
	return e, nil
}
