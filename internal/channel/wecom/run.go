package wecom

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/base/outbound"
	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/channel"
)

const (
	// pingGap is the time between two pings. The platform closes a connection without them.
	pingGap = 30 * time.Second
	// dialLimit limits the opening of a connection.
	dialLimit = 20 * time.Second
	// maxIncoming is how many messages may wait to be stored. If there are more, the connection waits.
	maxIncoming = 256
	// storeLimit limits the storing of the messages that wait when Run ends.
	storeLimit = 5 * time.Second
	// provenAfter is how long a connection must last for its loss to be a new outage, after which the first wait is short again.
	provenAfter = 2 * time.Second
	// displacedPause is how long a connection that was displaced is not restored.
	displacedPause = 5 * time.Minute
)

// connectAgain are the waits after a connection was lost or could not be opened.
var connectAgain = retry.Schedule{Initial: time.Second, Max: 30 * time.Second, Jitter: true}

// Run implements [channel.Channel]. It keeps a connection open.
func (c *bot) Run(ctx context.Context, inbox channel.Inbox) error {
	c.link.end(false)
	defer c.link.end(true)
	incoming, stored := make(chan channel.InboundMessage, maxIncoming), make(chan struct{})
	go func() { // ends with Run
		defer close(stored)
		c.storeAll(ctx, inbox, incoming)
	}()
	defer func() {
		close(incoming)
		<-stored
	}()
	for failed := 1; ; failed++ {
		begin := time.Now()
		err := c.connect(ctx, incoming)
		if ctx.Err() != nil {
			return nil
		}
		if isRefused(err) {
			return err
		}
		if time.Since(begin) > provenAfter {
			failed = 1
		}
		wait := connectAgain.Wait(failed)
		if errors.Is(err, errDisplaced) {
			wait = displacedPause
			c.log.Error("WeCom connection was displaced: another program uses the bot", "wait", wait)
		} else if failed == 1 { // once for an outage
			c.log.Warn("WeCom connection was lost; trying again", "error", err)
		}
		_ = retry.Sleep(ctx, wait) // if ctx ends, so does the loop
	}
}

// connect opens a connection and uses it until it ends. The result says why.
func (c *bot) connect(ctx context.Context, incoming chan<- channel.InboundMessage) error {
	dial, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	conn, _, err := websocket.Dial(dial, c.url, &websocket.DialOptions{HTTPClient: c.dialer}) //nolint:bodyclose // Dial closes it
	if err != nil {
		return outbound.Reason(err)
	}
	conn.SetReadLimit(maxFrame)
	c.link.open(conn)
	ctx, end := context.WithCancelCause(ctx)
	reader := make(chan struct{})
	go func() { // ends with the connection
		defer close(reader)
		end(c.readFrames(ctx, conn, incoming))
	}()
	err = c.ping(ctx)
	end(err)
	_ = conn.CloseNow() // the platform may have closed it
	c.link.close()
	<-reader
	if isRefused(err) { // the platform closes the connection too
		return err
	}
	return context.Cause(ctx)
}

// ping subscribes and sends pings until one fails or ctx ends.
func (c *bot) ping(ctx context.Context) error {
	credentials := map[string]string{"bot_id": c.options.BotID, "secret": c.options.Secret}
	if err := c.link.request(ctx, commandSubscribe, newID(commandSubscribe), credentials, nil); err != nil {
		return err
	}
	c.link.ready()
	c.log.Info("WeCom bot is ready")
	for {
		if err := retry.Sleep(ctx, pingGap); err != nil {
			return err
		}
		if err := c.link.request(ctx, commandPing, newID(commandPing), nil, nil); err != nil {
			return errors.Join(errSilent, err)
		}
	}
}

// readFrames reads frames until the connection ends. It doesn't store messages: while it did, no acknowledgement would be read, so the
// connection would seem to be lost.
func (c *bot) readFrames(ctx context.Context, conn *websocket.Conn, incoming chan<- channel.InboundMessage) error {
	for {
		_, raw, err := conn.Read(ctx)
		if err != nil {
			return err
		}
		var f frame
		if err := json.Unmarshal(raw, &f); err != nil {
			return err
		}
		switch f.Command {
		case "":
			c.link.acknowledge(f)
		case commandMessage:
			m, ok := inbound(&f)
			if !ok {
				continue
			}
			c.origins.add(m.ID, callback{request: f.Headers.ID, at: time.Now()})
			select {
			case incoming <- m:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		case commandEvent:
			var e notice
			if json.Unmarshal(f.Body, &e) == nil && e.Event.Type == "disconnected_event" {
				return errDisplaced
			}
		}
	}
}

// storeAll passes messages to the inbox until incoming is closed. When ctx has ended, each of the remaining ones is tried once.
func (c *bot) storeAll(ctx context.Context, inbox channel.Inbox, incoming <-chan channel.InboundMessage) {
	var remaining []channel.InboundMessage
	for m := range incoming {
		if c.store(ctx, inbox, m) != nil {
			remaining = append(remaining, m)
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeLimit)
	defer cancel()
	for _, m := range remaining {
		if err := inbox.Receive(ctx, m); err != nil {
			c.log.Error("message of WeCom was lost: it could not be stored before the end", "error", err)
		}
	}
}

// store passes a message to the inbox. The platform doesn't send it again, so it is tried until it is stored or ctx ends.
func (c *bot) store(ctx context.Context, inbox channel.Inbox, m channel.InboundMessage) error {
	for failed := 1; ; failed++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := inbox.Receive(ctx, m)
		if err == nil {
			return nil
		}
		c.log.Error("message of WeCom could not be stored; trying again", "error", err)
		if err := retry.Sleep(ctx, connectAgain.Wait(failed)); err != nil {
			return err
		}
	}
}
