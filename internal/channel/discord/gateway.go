package discord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/channel"
)

// reconnect are the waits after connections that failed or broke. The jitter spreads the connections of many bots after an outage of
// the platform.
var reconnect = retry.Schedule{Initial: time.Second, Max: time.Minute, Jitter: true}

// identifyGap is the least time between the starts of two sessions. The platform calls a session invalid that was begun too early.
const identifyGap = 5 * time.Second

// stableAfter is how long a connection has to work before its end stops counting as a failure. Without it a connection that breaks at once, for
// example because a message can't be stored, would be opened again every second.
const stableAfter = 30 * time.Second

// fatal are the codes with which the gateway refuses the bot for good, and what an operator has to know.
var fatal = map[websocket.StatusCode]string{
	4004: "the token is invalid",
	4010: "the shard is invalid",
	4011: "the bot is in so many servers that it needs shards, which are not supported",
	4012: "the version of the gateway is not supported any more",
	4013: "the intents are invalid",
	4014: "the bot may not read the content of messages: switch on the Message Content Intent in the Developer Portal under Bot",
}

// errRefused means that the gateway refuses the bot for good.
var errRefused = errors.New("discord: the bot is refused")

// session is the position in the events of the gateway. It survives its connections. It is in memory only. After a restart a new
// session begins, and messages of the meantime are not delivered by the platform.
type session struct {
	id  string // empty before the first READY, and when the session has ended
	url string // for the next connection
	seq int64  // of the last event that was handled

	identified time.Time // when a session was begun last
}

// run is one call of Run. Its fields are used by one goroutine at a time: that of Run, which is also the one that handles events.
type run struct {
	*bot
	inbox   channel.Inbox
	session session
	tasks   sync.WaitGroup // confirmations of interactions, and the registration of commands
	isKnown bool           // the commands were registered, or are being
}

// Run implements [channel.Channel]. It returns an error only if a repetition is useless, so that the operator sees the channel as
// failed: a wrong token, or intents that the application may not use.
func (c *bot) Run(ctx context.Context, inbox channel.Inbox) error {
	r := &run{bot: c, inbox: inbox}
	defer r.tasks.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failures := retry.Backoff{Schedule: reconnect}
	hasWarned := false
	for ctx.Err() == nil {
		isStable, err := r.connect(ctx)
		if isStable {
			failures.Reset()
			hasWarned = false
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errRefused) || refusal(err).Status == http.StatusUnauthorized:
			return err
		case isStable:
			c.log.Debug("the connection to Discord has ended", "error", err)
		case !hasWarned: // once for an outage
			hasWarned = true
			c.log.Warn("Discord can't be reached; trying again", "error", err)
		}
		_ = retry.Sleep(ctx, max(failures.Next(), refusal(err).RetryAfter)) // if ctx ends, so does the loop
	}
	return nil
}

// connect makes one connection and handles its events until it ends. isStable reports that it worked for a while.
func (r *run) connect(ctx context.Context) (isStable bool, err error) {
	address := r.session.url
	if r.session.id == "" || address == "" {
		if address, err = r.find(ctx); err != nil {
			return false, err
		}
	}
	address, err = r.client.gatewayAddress(address)
	if err != nil {
		return false, err
	}
	dial, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	ws, _, err := websocket.Dial(dial, address, &websocket.DialOptions{
		HTTPClient: r.client.socket, HTTPHeader: http.Header{"User-Agent": {userAgent}},
	})
	if err != nil {
		r.session.url = "" // it may be out of date; the session can be resumed at the general address too
		return false, fmt.Errorf("discord: gateway: %w", err)
	}
	k := newConnection(ctx, r, ws)
	defer k.close()
	err = k.follow(ctx)
	if code := websocket.CloseStatus(err); code != -1 {
		err = r.closed(code, err)
	}
	return !k.readyAt.IsZero() && time.Since(k.readyAt) >= stableAfter, err
}

// find returns the address of the gateway. Without a session it waits until one may be begun. The day's number of starts is part of
// the answer. A bot that exceeds it loses its token, so it waits even for hours.
func (r *run) find(ctx context.Context) (string, error) {
	var gateway struct {
		URL   string `json:"url"`
		Limit struct {
			Remaining  int     `json:"remaining"`
			ResetAfter float64 `json:"reset_after"` // milliseconds
		} `json:"session_start_limit"`
	}
	if err := r.client.call(ctx, at(http.MethodGet, "/gateway/bot"), nil, &gateway); err != nil {
		return "", err
	}
	// To resume a session costs no start.
	if r.session.id != "" {
		return gateway.URL, nil
	}
	wait := time.Until(r.session.identified.Add(identifyGap))
	if reset := time.Duration(gateway.Limit.ResetAfter) * time.Millisecond; gateway.Limit.Remaining == 0 && reset > wait {
		r.log.Error("the bot has begun too many sessions today; waiting", "wait", reset)
		wait = reset
	}
	return gateway.URL, retry.Sleep(ctx, wait)
}

// closed returns what it means that the gateway has closed the connection with a code. After other codes the session can be resumed.
func (r *run) closed(code websocket.StatusCode, err error) error {
	if reason, ok := fatal[code]; ok {
		return fmt.Errorf("%w: %s (gateway code %d)", errRefused, reason, code)
	}
	const invalidPosition, timedOut = 4007, 4009
	if code == invalidPosition || code == timedOut {
		r.session.id = ""
	}
	return err
}

// invalidated waits after the gateway has called a session invalid, for a random time as the platform demands. The documentation asks
// for 1 to 5 s, so that bots don't begin sessions all at once after an outage.
func (r *run) invalidated(ctx context.Context, canResume bool) {
	if !canResume {
		r.log.Warn("Discord has ended the session; messages of the last moments may be lost")
		r.session.id = ""
	}
	_ = retry.Sleep(ctx, time.Second+rand.N(4*time.Second)) // if ctx ends, so does the caller
}

// gatewayAddress returns the address for a connection. The token is sent over it, so it has to be encrypted.
func (c *client) gatewayAddress(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "wss" && !(u.Scheme == "ws" && c.allowPrivate) {
		return "", errors.New("discord: the address of the gateway is invalid")
	}
	u.RawQuery = "v=10&encoding=json"
	u.Path = cmp.Or(u.Path, "/")
	return u.String(), nil
}
