package letta

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/letta"
)

// config says where the agent is.
type config struct {
	URL          string
	Agent        string // id, or a template of it
	Conversation string // id, or a template of it; empty: one is made
	Token        string
	Mode         string // App Server: the permission mode
	Steps        bool   // V1: whole messages in place of tokens
	Background   bool   // V1: the run goes on without a reader
}

// The times that a connection may take. Tests shorten them.
type times struct {
	dial       time.Duration // to connect
	answer     time.Duration // for what takes the server no time
	stall      time.Duration // without a byte: three of the server's pings, after which the connection counts as dead
	finish     time.Duration // after a stop reason the stream counts as ended, whatever the server leaves open
	abort      time.Duration // to tell the server that a turn was stopped
	heartbeat  time.Duration // from one sign of life to the next, while a message lies in the server's queue
	queueLimit time.Duration // that it may lie there while nothing happens
	retryDelay time.Duration // before the first repetition; each further one is twice as long
	retryLimit time.Duration // from the first failure to the last call

	catchUpLimit time.Duration // for a session to be caught up with before a message is sent
	rereadDelay  time.Duration // until a history is read again that does not show yet whether a message is answered
	patience     time.Duration // after which such a message counts as unanswered

	poll        time.Duration // V1: from one look at an agent's runs to the next
	idlePoll    time.Duration // V1: the same, if none has begun or ended for a minute
	pollGap     time.Duration // V1: between any two looks
	resumeGrace time.Duration // V1: after the start, in which turns are resumed, whose runs must not be taken for those of another client
}

var defaultTimes = times{
	dial: 10 * time.Second, answer: 30 * time.Second, stall: 75 * time.Second, finish: 2 * time.Second, abort: 4 * time.Second,
	heartbeat: 5 * time.Second, queueLimit: 10 * time.Minute,
	retryDelay: 500 * time.Millisecond, retryLimit: 60 * time.Second,
	catchUpLimit: 5 * time.Second, rereadDelay: 500 * time.Millisecond, patience: 3 * time.Second,
	poll: 2 * time.Second, idlePoll: 5 * time.Second, pollGap: 100 * time.Millisecond, resumeGrace: 10 * time.Second,
}

// newAgent returns the agent, whose streams are decoded by the given dialects. It does not connect.
func newAgent(c config, dialects dialect.Registry) (agent.Agent, error) {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil, u.Host == "":
		return nil, errors.New("the target is no address of a Letta server; write it as http://127.0.0.1:8283 or ws://127.0.0.1:4500/ws")
	case u.User != nil:
		return nil, errors.New("the target holds a name or password; use the option token, token_env or token_file")
	case c.Agent == "":
		return nil, errors.New("the option agent is missing: the id of the agent at the Letta server")
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
		return nil, fmt.Errorf("the dialect %s is not Letta's", name)
	}
	b := base{cfg: c, url: u, dialect: d, times: defaultTimes, maxStream: agent.MaxStream}
	switch u.Scheme {
	case "http", "https":
		if c.Mode != "" {
			return nil, errors.New("mode is an option of the App Server (ws, wss)")
		}
		return newREST(b), nil
	case "ws", "wss":
		if c.Steps || !c.Background {
			return nil, errors.New("stream and background are options of the V1 API (http, https)")
		}
		return newSocket(b), nil
	}
	return nil, fmt.Errorf("the target's scheme is %q; it takes http, https, ws or wss", u.Scheme)
}

// base is what both agents have.
type base struct {
	cfg       config
	url       *url.URL
	dialect   dialect.Dialect
	times     times
	maxStream int // bytes that a turn's stream may hold; tests lower it
}
