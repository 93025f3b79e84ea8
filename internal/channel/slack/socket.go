package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/base/outbound"
	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/channel"
)

const (
	// dialLimit limits the opening of a connection.
	dialLimit = 20 * time.Second
	// pingGap is the time between two pings, and pingLimit how long the answer to one may take. Slack pings as well. The bot's pings
	// find a connection on which frames get lost in the other direction.
	pingGap   = 20 * time.Second
	pingLimit = 10 * time.Second
	// writeLimit limits a confirmation.
	writeLimit = 5 * time.Second
	// maxFrame is the largest frame that is read, in bytes. The largest are messages with many blocks and files.
	maxFrame = 4 << 20
)

// stableAfter is how long a connection has to work before its end stops counting as a failure. Without it a connection that is ended at once would be
// opened again without a wait.
const stableAfter = 30 * time.Second

// connectAgain are the waits after connections that failed.
var connectAgain = retry.Schedule{Initial: time.Second, Max: 30 * time.Second, Jitter: true}

// pause waits after a number of failures in a row, and at least as long as the server asks. The server's wait takes precedence,
// because a request before its end would be refused.
func (c *bot) pause(ctx context.Context, failed int, err error) error {
	return retry.Sleep(ctx, max(connectAgain.Wait(failed), retryAfter(err)))
}

// Run implements [channel.Channel]. With an app-level token it receives by Socket Mode, which works behind every firewall. Otherwise
// Slack sends requests ([channel.WebhookChannel]), and Run only checks the token.
func (c *bot) Run(ctx context.Context, inbox channel.Inbox) error {
	c.inbox.Store(&inbox)
	self, err := c.identify(ctx)
	if err != nil {
		return err
	}
	c.log.Info("Slack bot is ready", "link", c.Link())
	// Run has to stay until its end, because the pipeline takes its return for a failure.
	if c.client.appToken == "" {
		<-ctx.Done()
		return nil
	}
	hasWarned := false
	for failed := 0; ; {
		isStable, err := c.connect(ctx, self, inbox)
		if isStable {
			failed, hasWarned = 0, false
		}
		failed++
		switch {
		case ctx.Err() != nil:
			return nil
		case isRefused(err), errors.Is(err, errNoSocketMode):
			return err
		case err == nil && failed == 1: // Slack asked for another connection
			continue
		case !hasWarned: // once for an outage
			hasWarned = true
			c.log.Warn("the connection to Slack was lost; trying again", "error", err)
		}
		if c.pause(ctx, failed, err) != nil {
			return nil
		}
	}
}

// errNoSocketMode means that only an operator can make connections possible.
var errNoSocketMode = errors.New("slack: Socket Mode is switched off in the settings of the app")

// frame is what Slack sends by a connection. Its type says which fields are set. An envelope has an id, by which it is acknowledged.
type frame struct {
	Type    string          `json:"type"`
	ID      string          `json:"envelope_id"`
	Reason  string          `json:"reason"`
	Payload json.RawMessage `json:"payload"`
}

// connect opens a connection and reads it until it ends. The error is nil if Slack asked for another one. isStable reports that the
// connection worked for a while. Slack replaces connections every few hours, with a warning of some seconds.
func (c *bot) connect(ctx context.Context, self *account, inbox channel.Inbox) (isStable bool, err error) {
	var answer struct {
		URL string `json:"url"`
	}
	if err := c.client.call(ctx, methodOpen, nil, &answer); err != nil {
		return false, err
	}
	dial, cancel := context.WithTimeout(ctx, dialLimit)
	ws, _, err := websocket.Dial(dial, answer.URL, &websocket.DialOptions{HTTPClient: c.client.sockets}) //nolint:bodyclose // ws has it
	cancel()
	if err != nil {
		return false, fmt.Errorf("slack: connection: %w", outbound.Reason(err)) // the address contains a ticket
	}
	// Slack delivers unconfirmed envelopes to the next connection.
	defer ws.CloseNow()
	ws.SetReadLimit(maxFrame)
	ctx, cancel = context.WithCancel(ctx)
	var pinger sync.WaitGroup
	defer pinger.Wait()
	defer cancel()
	pinger.Go(func() {
		defer cancel() // a connection without pongs is dead
		ping(ctx, ws)
	})
	var upAt time.Time // zero before the hello
	defer func() { isStable = !upAt.IsZero() && time.Since(upAt) >= stableAfter }()
	for {
		_, raw, err := ws.Read(ctx)
		if err != nil {
			return false, fmt.Errorf("slack: connection: %w", err)
		}
		var f frame
		if err := json.Unmarshal(raw, &f); err != nil {
			return false, fmt.Errorf("slack: frame: %w", err)
		}
		switch f.Type {
		case "hello":
			upAt = time.Now()
		case "disconnect":
			if f.Reason == "link_disabled" {
				return false, errNoSocketMode
			}
			return false, nil
		default:
			if err := c.receive(ctx, self, inbox, ws, &f); err != nil {
				return false, err
			}
		}
	}
}

// ping sends pings until one gets no answer or ctx ends. The connection ends with it, so a new one is opened.
func ping(ctx context.Context, ws *websocket.Conn) {
	for retry.Sleep(ctx, pingGap) == nil {
		answer, cancel := context.WithTimeout(ctx, pingLimit)
		err := ws.Ping(answer)
		cancel()
		if err != nil {
			return
		}
	}
}

// receive passes the message of an envelope to the inbox and confirms the envelope. If the inbox can't store it, the envelope is not
// confirmed, and Slack delivers it again. Slack waits three seconds for the confirmation. What can't be read is confirmed as well,
// because a repetition would not help.
func (c *bot) receive(ctx context.Context, self *account, inbox channel.Inbox, ws *websocket.Conn, f *frame) error {
	if f.ID == "" {
		return nil
	}
	m, ok, err := c.parse(ctx, self, f.Type, f.Payload)
	if err != nil {
		c.log.Warn("an event of Slack can't be read", "kind", f.Type, "error", err) // it would not be readable the next time either
	}
	if ok {
		if err := inbox.Receive(ctx, m); err != nil {
			if ctx.Err() == nil {
				c.log.Error("a message of Slack can't be stored", "error", err)
			}
			return nil
		}
	}
	write, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	raw, err := json.Marshal(map[string]string{"envelope_id": f.ID})
	if err == nil {
		err = ws.Write(write, websocket.MessageText, raw)
	}
	if err != nil {
		return fmt.Errorf("slack: confirmation: %w", err)
	}
	return nil
}

// parse returns the message that a payload brings, or false if it brings none. The payloads are the same by Socket Mode and by
// requests.
func (c *bot) parse(ctx context.Context, self *account, kind string, payload []byte) (m channel.InboundMessage, ok bool, err error) {
	switch kind {
	case "events_api":
		var e callback
		if err = json.Unmarshal(payload, &e); err == nil {
			m, ok = c.inbound(ctx, self, &e.Event)
		}
	case "interactive":
		var p press
		if err = json.Unmarshal(payload, &p); err == nil {
			m, ok = c.pressed(&p)
		}
	case "slash_commands":
		var s slash
		if err = json.Unmarshal(payload, &s); err == nil {
			m, ok = c.commanded(&s, time.Now())
		}
	}
	return m, ok, err
}
