package letta

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/letta"
)

// config is the parsed settings of one agent (see parseSpec).
type config struct {
	URL          string
	Agent        string // the agent's id at the server; it may contain {tenant}, {subject} and {conversation}
	Conversation string // the conversation's id, with the same placeholders; if empty, the server creates one for each conversation of Leat
	Token        string
	Mode         string // App Server: the permission mode; if empty, the conversation's mode stays as it is
	Steps        bool   // V1: the server streams complete messages instead of tokens
	Background   bool   // V1: the run continues without a reader, so that it can be resumed
}

// times are the timeouts and intervals of both agents. They are fields so that tests can shorten them.
type times struct {
	dial       time.Duration // limit for connecting; also the longest pause before a broken stream is resumed
	answer     time.Duration // limit for a request that the server answers without calling a model
	stall      time.Duration // longest time without a byte; it spans three of the server's pings, so it means a dead connection
	finish     time.Duration // after a stop reason, how long the stream may stay open before it counts as ended
	abort      time.Duration // limit for stopping a turn at the server
	heartbeat  time.Duration // interval at which a turn is reported as alive while its message is in the server's queue
	queueLimit time.Duration // how long a queued message waits while the server sends nothing, before the turn fails
	retryDelay time.Duration // pause before the first retry; it doubles with each retry
	retryLimit time.Duration // time from the first failure after which a request is not retried any more

	catchUpLimit time.Duration // how long a turn waits for earlier runs of the session to be recorded before it sends its message
	rereadDelay  time.Duration // pause before a history is read again that doesn't show yet whether a message will be answered
	patience     time.Duration // time after which such a message counts as unanswered

	poll        time.Duration // V1: interval between two listings of an agent's runs
	idlePoll    time.Duration // V1: the same interval if no run has started or ended for a minute
	pollGap     time.Duration // V1: shortest pause between two requests of the poller
	resumeGrace time.Duration // V1: time after the start in which an unknown run may belong to a turn that Leat still has to resume
}

// defaultTimes are the times in production. V1 sends a ping every 20 s, so stall covers three of them.
var defaultTimes = times{
	dial: 10 * time.Second, answer: 30 * time.Second, stall: 75 * time.Second, finish: 2 * time.Second, abort: 4 * time.Second,
	heartbeat: 5 * time.Second, queueLimit: 10 * time.Minute,
	retryDelay: 500 * time.Millisecond, retryLimit: 60 * time.Second,
	catchUpLimit: 5 * time.Second, rereadDelay: 500 * time.Millisecond, patience: 3 * time.Second,
	poll: 2 * time.Second, idlePoll: 5 * time.Second, pollGap: 100 * time.Millisecond, resumeGrace: 10 * time.Second,
}

// newAgent checks the settings and returns a [restAgent] or a [socketAgent], as the scheme of the URL says. It doesn't connect.
// The decoder of the dialect has to be Letta's, since a turn asks it for more than events: cursors, pending approvals and open
// tools.
func newAgent(c config, dialects dialect.Registry) (agent.Agent, error) {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil, u.Host == "":
		return nil, errors.New("the target is not the URL of a Letta server; use a URL such as http://127.0.0.1:8283 or ws://127.0.0.1:4500/ws")
	case u.User != nil:
		return nil, errors.New("the target contains a user name or password; use the option token, token_env or token_file instead")
	case c.Agent == "":
		return nil, errors.New("the option agent is missing; set it to the agent's id at the Letta server")
	}
	for _, t := range []string{c.Agent, c.Conversation} {
		if _, err := agent.Expand(t, agent.Input{}); err != nil {
			return nil, err
		}
	}
	name := letta.Code().Name
	if strings.HasPrefix(u.Scheme, "http") {
		name = letta.Dialect().Name
	}
	d, err := dialects.Lookup(name)
	if err != nil {
		return nil, err
	}
	if _, ok := dialect.Unwrap(d.Decoder()).(*letta.Decoder); !ok {
		return nil, fmt.Errorf("the decoder of the dialect %s is not Letta's", name)
	}
	b := base{cfg: c, url: u, dialect: d, times: defaultTimes, maxStream: agent.MaxStream}
	switch u.Scheme {
	case "http", "https":
		if c.Mode != "" {
			return nil, errors.New("the option mode needs the App Server (ws, wss)")
		}
		return newREST(b), nil
	case "ws", "wss":
		if c.Steps || !c.Background {
			return nil, errors.New("the options stream and background need the V1 API (http, https)")
		}
		return newSocket(b), nil
	}
	return nil, fmt.Errorf("invalid scheme %q of the target; use http, https, ws or wss", u.Scheme)
}

// base has the fields and methods that both agents share.
type base struct {
	cfg       config
	url       *url.URL
	dialect   dialect.Dialect
	times     times
	maxStream int // limit of a turn's stream, in bytes; tests lower it
}

// clientID returns the id that Leat gives a message at the server: the client_message_id of the App Server, the otid of V1.
// Both servers repeat it in their history, where it identifies Leat's turn and message. It is the same after a restart, so V1
// can drop a message that arrives twice.
func clientID(in agent.Input, message string) string { return in.Turn + "." + message }

// parseClientID splits an id that clientID has made. ok is false for the id of another client's message.
func parseClientID(client string) (turn, message string, ok bool) {
	turn, message, ok = strings.Cut(client, ".")
	return turn, message, ok && message != "" && uuid.Validate(turn) == nil
}
