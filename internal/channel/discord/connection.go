package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/channel"
)

const (
	// maxFrame limits a frame of the gateway, in bytes.
	maxFrame = 16 << 20
	// writeLimit limits the sending of one frame.
	writeLimit = 10 * time.Second
	// intents are the events that the bot gets: messages in servers and direct chats, with their content. The first one is for servers
	// and their threads themselves; without it a bot is not sure to get the messages in new threads. The content of messages is a
	// privileged intent: an operator has to switch it on in the Developer Portal.
	intents = 1<<0 | 1<<9 | 1<<12 | 1<<15
)

// Kinds of frames.
const (
	// The documentation calls these opcodes of the gateway.
	opDispatch     = 0
	opHeartbeat    = 1
	opIdentify     = 2
	opResume       = 6
	opReconnect    = 7
	opInvalid      = 9
	opHello        = 10
	opHeartbeatAck = 11
)

var (
	// Neither is a failure: the bot connects again, and resumes the session in the first case.
	errAskedToReconnect = errors.New("discord: the gateway asks for another connection")
	errInvalidSession   = errors.New("discord: the session is invalid")
)

// frame is a frame of the gateway. Seq and Type are set for events only.
type frame struct {
	Op   int             `json:"op"`
	Data json.RawMessage `json:"d"`
	Seq  int64           `json:"s"`
	Type string          `json:"t"`
}

// connection is one WebSocket to the gateway. Besides the goroutine of follow, one sends heartbeats, and one closes the connection
// properly when the context of Run ends. close ends both.
type connection struct {
	*run
	ws *websocket.Conn
	// readyAt is when the session was begun or resumed, or zero.
	readyAt time.Time

	// A frame that says goodbye can still be sent by it when the context of Run has ended.
	life  context.Context // of the connection; it survives the context of Run, so that the connection can be closed properly
	end   context.CancelFunc
	tasks sync.WaitGroup
	seq   atomic.Int64 // that of the session, for heartbeats
	acked atomic.Bool  // the last heartbeat was confirmed
}

// newConnection takes over a WebSocket. ctx is that of Run.
func newConnection(ctx context.Context, r *run, ws *websocket.Conn) *connection {
	ws.SetReadLimit(maxFrame)
	k := &connection{run: r, ws: ws}
	k.life, k.end = context.WithCancel(context.WithoutCancel(ctx))
	k.acked.Store(true)
	k.tasks.Go(func() {
		select {
		case <-ctx.Done():
			_ = ws.Close(websocket.StatusNormalClosure, "") // the bot is shown as offline
		case <-k.life.Done():
		}
	})
	return k
}

// close ends the connection and waits for its goroutines. A connection that isn't closed properly can be resumed. It may be called at
// any time, also when a goroutine has already found the connection dead.
func (k *connection) close() {
	k.end()
	_ = k.ws.CloseNow()
	k.tasks.Wait()
}

// follow handles frames until the connection ends or ctx does. The server has to send its hello within a limit; afterwards the
// heartbeats find a connection that is dead.
func (k *connection) follow(ctx context.Context) error {
	hello, cancel := context.WithTimeout(k.life, requestLimit)
	defer cancel()
	for ctxRead := hello; ; ctxRead = k.life {
		_, raw, err := k.ws.Read(ctxRead)
		if err != nil {
			return err
		}
		var f frame
		if err := json.Unmarshal(raw, &f); err != nil {
			return fmt.Errorf("discord: a frame of the gateway: %w", err)
		}
		switch f.Op {
		case opHello:
			err = k.begin(f.Data)
		case opHeartbeat:
			err = k.heartbeat()
		case opHeartbeatAck:
			k.acked.Store(true)
		case opReconnect:
			err = errAskedToReconnect
		case opInvalid:
			k.invalidated(ctx, string(f.Data) == "true")
			err = errInvalidSession
		case opDispatch:
			err = k.handle(ctx, &f)
		}
		if err != nil {
			return err
		}
	}
}

// begin starts the heartbeats, and begins or resumes the session. The first heartbeat needs the position of the session, so that is
// set before the goroutine starts.
func (k *connection) begin(raw json.RawMessage) error {
	var hello struct {
		Interval float64 `json:"heartbeat_interval"` // milliseconds
	}
	if err := json.Unmarshal(raw, &hello); err != nil || hello.Interval <= 0 {
		return errors.New("discord: the gateway names no interval of heartbeats")
	}
	k.seq.Store(k.session.seq)
	k.tasks.Go(func() { k.beat(time.Duration(hello.Interval * float64(time.Millisecond))) })
	if k.session.id != "" {
		return k.write(opResume, map[string]any{"token": k.client.token, "session_id": k.session.id, "seq": k.session.seq})
	}
	k.session.identified = time.Now()
	k.session.seq = 0
	k.seq.Store(0)
	return k.write(opIdentify, map[string]any{
		"token": k.client.token, "intents": intents,
		"properties": map[string]string{"os": runtime.GOOS, "browser": "leat", "device": "leat"},
	})
}

// beat sends heartbeats, the first after a random part of the interval. If one was not confirmed before the next is due, the connection
// is dead, and is broken off. The random delay spreads the heartbeats of many bots after an outage of the platform.
func (k *connection) beat(interval time.Duration) {
	for wait := rand.N(interval); retry.Sleep(k.life, wait) == nil; wait = interval {
		if !k.acked.Swap(false) {
			k.log.Debug("Discord did not confirm a heartbeat")
			_ = k.ws.CloseNow()
			return
		}
		if k.heartbeat() != nil {
			return // follow has the error too
		}
	}
}

// heartbeat sends a heartbeat with the position of the last event. Before the first event the position is null, as the documentation
// demands.
func (k *connection) heartbeat() error {
	if seq := k.seq.Load(); seq > 0 {
		return k.write(opHeartbeat, seq)
	}
	return k.write(opHeartbeat, nil)
}

// write sends a frame. Several goroutines may call it: the WebSocket serializes writes.
func (k *connection) write(op int, data any) error {
	raw, err := json.Marshal(map[string]any{"op": op, "d": data})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(k.life, writeLimit)
	defer cancel()
	return k.ws.Write(ctx, websocket.MessageText, raw)
}

// handle handles an event. When it returns without an error, the event doesn't have to be sent again. An event that the bot doesn't
// need advances the position as well.
func (k *connection) handle(ctx context.Context, f *frame) error {
	var err error
	switch f.Type {
	case "READY":
		err = k.ready(ctx, f.Data)
	case "RESUMED":
		k.readyAt = time.Now()
	case "MESSAGE_CREATE":
		err = k.receive(ctx, f.Data)
	case "INTERACTION_CREATE":
		err = k.interact(ctx, f.Data)
	}
	if err != nil {
		return fmt.Errorf("discord: event %s: %w", f.Type, err)
	}
	k.session.seq = f.Seq
	k.seq.Store(f.Seq)
	return nil
}

// ready begins a session. The commands are registered once for each call of Run, not for each session.
func (k *connection) ready(ctx context.Context, raw json.RawMessage) error {
	var data struct {
		Session     string `json:"session_id"`
		URL         string `json:"resume_gateway_url"`
		User        user   `json:"user"`
		Application struct {
			ID string `json:"id"`
		} `json:"application"`
	}
	if err := json.Unmarshal(raw, &data); err != nil {
		return err
	}
	k.readyAt = time.Now()
	k.session.id, k.session.url = data.Session, data.URL
	k.account.Store(&account{userID: data.User.ID, applicationID: data.Application.ID})
	if !k.isKnown {
		k.isKnown = true
		k.log.Info("Discord bot is ready", "link", k.Link())
		k.run.tasks.Go(func() { k.register(ctx, data.Application.ID) })
	}
	return nil
}

// receive stores a message.
func (k *connection) receive(ctx context.Context, raw json.RawMessage) error {
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		k.log.Warn("a message could not be read", "error", err) // reading it again would fail again
		return nil
	}
	if in, ok := inbound(&m, k.account.Load().userID); ok {
		return k.store(ctx, in)
	}
	return nil
}

// store stores a message. The end of the connection is not logged, so the error is logged here.
func (k *connection) store(ctx context.Context, in channel.InboundMessage) error {
	err := k.inbox.Receive(ctx, in)
	if err != nil && ctx.Err() == nil {
		k.log.Error("a message of Discord can't be stored; it is received again", "error", err)
	}
	return err
}

// interact stores an interaction, and then confirms it. A slash command has to be known before it is stored: the pipeline may reply
// while Receive is still running.
func (k *connection) interact(ctx context.Context, raw json.RawMessage) error {
	var e interactionEvent
	if err := json.Unmarshal(raw, &e); err != nil {
		k.log.Warn("an interaction could not be read", "error", err)
		return nil
	}
	in, ok := e.message()
	if e.Type == interactionCommand && ok {
		i := k.interactions.add(&e)
		if err := k.store(ctx, in); err != nil {
			k.interactions.finish(i)
			return err
		}
		k.run.tasks.Go(func() { k.serve(ctx, &e, i) })
		return nil
	}
	if ok {
		if err := k.store(ctx, in); err != nil {
			return err
		}
	}
	if e.Type == interactionPress {
		k.run.tasks.Go(func() { k.confirm(ctx, &e, confirmPress) })
	}
	return nil
}
