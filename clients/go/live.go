package leat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// liveSilence is how long live events may be silent: the gateway tells its status every 5 s.
const liveSilence = 20 * time.Second

// maxLive bounds a live event, in bytes; the gateway's are far shorter.
const maxLive = 4 << 20

// LiveOptions say what a Live begins with, and who is told of its interruptions.
type LiveOptions struct {
	// ClientID names the program to the gateway, for what is meant for one program alone, such as a terminal's output.
	ClientID string
	// After is the id of the last signal that is known, such as evt-42: what came after it is shown first. Empty: the last 120.
	After string
	// Dropped is called, where it is set, with each frame of Send that was pushed out of the queue by newer ones.
	OnDrop func(frame json.RawMessage)
	// Lost and Hurry are those of StreamOptions.
	OnDisconnect func(err error, next time.Duration)
	Hurry        <-chan struct{}
}

// Live follows what happens beside the conversations: the state of the default agent, signals of turns and of other programs,
// what agents say of their own accord (docs/eliza.md, "Live events"). Make one with [Client.Live]; its methods may be called
// from several goroutines.
type Live struct {
	c *Client
	o LiveOptions
	q *liveQueue
}

// Live returns one that is not connected before Run.
func (c *Client) Live(o LiveOptions) *Live { return &Live{c: c, o: o, q: newLiveQueue(o.OnDrop)} }

// Look tells which conversation the user looks at; empty: none. It is told again on each new connection.
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
		panic(err) // strings have a JSON form
	}
	l.q.setActive(b)
}

// Send sends a control frame as JSON, now or when there is a connection. 32 wait at most; the oldest make way for newer ones.
func (l *Live) Send(frame any) error {
	b, err := json.Marshal(frame)
	if err != nil {
		return fmt.Errorf("leat: encode frame: %w", err)
	}
	l.q.add(control{frame: b})
	return nil
}

// Run connects, and calls fn with each event, until fn returns an error: ErrStop ends it without one. It connects again by itself,
// and goes on behind the last signal; where some are gone, an event replay-gap says so. It ends otherwise as [Client.Stream] does.
// One Run at a time.
func (l *Live) Run(ctx context.Context, fn func(*LiveEvent) error) error {
	var wait backoff
	renewed := false
	for {
		start := time.Now()
		began, err := l.connect(ctx, fn)
		if began { // here the gateway has taken the token, which to be connected does not say
			renewed = false
			if time.Since(start) >= lasting {
				wait.reset()
			}
		}
		var callbackErr *ownError
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &callbackErr) && errors.Is(callbackErr.error, ErrStop):
			return nil
		case errors.As(err, &callbackErr):
			return callbackErr.error
		case l.c.renews(err) && !renewed:
			renewed = true
		case !temporary(err):
			return err
		}
		d := wait.after(err)
		if errors.Is(err, errLiveSilence) {
			d = 0 // the wait is behind it
		}
		if l.o.OnDisconnect != nil {
			l.o.OnDisconnect(err, d)
		}
		if err := sleep(ctx, d, l.o.Hurry); err != nil {
			return err
		}
	}
}

var errLiveSilence = fmt.Errorf("nothing came for %v", liveSilence)

// connect reads one connection to its end. began says that it became active. It never returns nil.
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
			began = true // with the first status
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

func (l *Live) dial(ctx context.Context) (*websocket.Conn, error) {
	q := url.Values{}
	for name, v := range map[string]string{"clientId": l.o.ClientID, "lastEventId": l.o.After} {
		if v != "" {
			q.Set(name, v)
		}
	}
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

// cut says why a connection ended.
func (l *Live) disconnectError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	var closed websocket.CloseError
	if errors.As(err, &closed) && closed.Code == websocket.StatusPolicyViolation {
		return &Error{Message: closed.Reason, Reason: reasonExpired, Status: http.StatusUnauthorized}
	}
	return fmt.Errorf("leat: connection lost: %w", err)
}

// LiveEvent is one event. Of the fields behind Type the one that belongs to it is set; of types that this client does not know
// there is Raw.
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
	MissedFrames int64             // resync: read again what is shown

	// Raw is the event as it came.
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

// LiveSignal is the envelope of what the gateway keeps and shows again.
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

// LiveProactive is what an agent says of its own accord.
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

// LiveConversation is what was changed about a conversation.
type LiveConversation struct {
	ID      string    `json:"id"`
	Title   string    `json:"title"`
	Created time.Time `json:"createdAt"`
	Updated time.Time `json:"updatedAt"`
}

// LiveRead says how far the user has read a conversation, on whatever device.
type LiveRead struct {
	Conversation string `json:"conversationId"`
	Unread       bool   `json:"unread"`
	Seq          int64  `json:"read"`
}

// LiveGap says that signals after one are kept no more; First is the next that there is, empty where there is none.
type LiveGap struct {
	After       string `json:"after"`
	FirstSignal string `json:"first"`
}

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
