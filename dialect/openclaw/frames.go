package openclaw

import (
	"github.com/leat-dev/leat/event"
)

// frame is an event or a response from the gateway. Fields that it doesn't have are empty. Frames of the other
// direction, which the client sends, don't get here; see [decoder.SawRequest].
type frame struct {
	typ   []byte
	event []byte
	// ok is false for a response that refuses the request, and for events.
	ok      bool
	payload payload
}

// payload holds the fields of all payloads that are decoded. What a field means depends on the frame.
type payload struct {
	typ      []byte // of a response; "hello-ok"
	protocol int64  // of hello-ok

	// run is the id of the run, and the turn of its events.
	run       []byte
	session   []byte
	spawnedBy []byte // the session that spawned this one
	// seq numbers the agent frames of a run, with gaps. It isn't the seq of the connection's frames, which the client
	// checks.
	seq int64

	stream []byte    // agent
	data   agentData // agent

	state        []byte // chat
	status       []byte // of a response to chat.send
	phase        []byte
	stopReason   []byte
	errorKind    []byte
	errorMessage []byte
	errorReason  []byte // of errorDetail: why OpenClaw would try another model
	message      []byte // JSON, not decoded yet
	messages     []byte // JSON, not decoded yet; in a response to chat.history
	usage        []byte // JSON, not decoded yet
}

// parse decodes a frame in one pass. The slices point into b.
func (f *frame) parse(b []byte) error {
	c := cursor{b: b}
	if !c.enter('{') {
		return errNotObject
	}
	var key []byte
	for c.next(&key) {
		switch string(key) {
		case "type":
			f.typ = c.bytes()
		case "event":
			f.event = c.bytes()
		case "ok":
			f.ok = c.bool()
		case "payload":
			f.payload.parse(&c)
		default:
			c.skip()
		}
	}
	if !c.atEnd() {
		return errNotObject
	}
	return nil
}

// parse decodes a payload. Unknown fields are skipped.
func (p *payload) parse(c *cursor) {
	if !c.enter('{') {
		return
	}
	var key []byte
	for c.next(&key) {
		switch string(key) {
		case "type":
			p.typ = c.bytes()
		case "protocol":
			p.protocol = c.int()
		case "runId":
			p.run = c.bytes()
		case "sessionKey":
			p.session = c.bytes()
		case "spawnedBy":
			p.spawnedBy = c.bytes()
		case "seq":
			p.seq = c.int()
		case "stream":
			p.stream = c.bytes()
		case "data":
			p.data.parse(c)
		case "state":
			p.state = c.bytes()
		case "status":
			p.status = c.bytes()
		case "phase":
			p.phase = c.bytes()
		case "stopReason":
			p.stopReason = c.bytes()
		case "errorKind":
			p.errorKind = c.bytes()
		case "errorMessage":
			p.errorMessage = c.bytes()
		case "errorDetail":
			p.detail(c)
		case "message":
			p.message = c.raw()
		case "messages":
			p.messages = c.raw()
		case "usage":
			p.usage = c.raw()
		default:
			c.skip()
		}
	}
}

// detail decodes errorDetail, of which only the failover reason is needed.
func (p *payload) detail(c *cursor) {
	if !c.enter('{') {
		return
	}
	var key []byte
	for c.next(&key) {
		if string(key) == "failoverReason" {
			p.errorReason = c.bytes()
		} else {
			c.skip()
		}
	}
}

// route decodes a frame by its kind. Kinds that only concern the connection are ignored, and unknown ones are
// counted, so that an operator notices a new protocol.
func (d *decoder) route(f *frame) error {
	switch string(f.typ) {
	case "event":
		switch string(f.event) {
		case "agent":
			return d.agent(&f.payload)
		case "chat":
			return d.chat(&f.payload)
		case "connect.challenge", "tick", "health", "presence", "shutdown":
			return nil
		}
	case "res":
		return d.response(f)
	}
	name := string(f.event)
	if name == "" {
		name = string(f.typ)
	}
	d.Unknowns.Add(name)
	return nil
}

// response takes the protocol from a handshake, rows from a history, and a run from the response to chat.send. The statuses
// started, in_flight, ok and accepted all mean that the gateway has the message; only a chat frame ends the run. The client
// that sent the request handles refusals.
func (d *decoder) response(f *frame) error {
	p := &f.payload
	switch {
	case !f.ok:
	case string(p.typ) == "hello-ok":
		d.Protocol = int(p.protocol)
	case len(p.messages) > 0:
		return d.history(p)
	case len(p.run) > 0:
		switch string(p.status) {
		case "started", "in_flight", "ok", "accepted":
			_, err := d.run(p, true)
			return err
		}
	}
	return nil
}

// foreign counts frames of other conversations' runs, and of runs that had ended before the stream began.
const foreign = "foreign run"

// run returns the run of a frame. If the run is new and begins is true, it is added. The result is nil if the run has ended,
// belongs to another conversation, or is new in a frame that can't begin one. The error says that the id can't be
// used, or that there are too many runs.
func (d *decoder) run(p *payload, begins bool) (*run, error) {
	if len(p.run) == 0 {
		d.Unknowns.Add("run without id")
		return nil, nil
	}
	for _, r := range d.Runs {
		if r.ID == string(p.run) {
			d.adopt(p, true)
			return r, nil
		}
	}
	// Late frames of a run that has ended are neither unknown nor a new run.
	for _, id := range d.EndedRuns {
		if id == string(p.run) {
			return nil, nil
		}
	}
	if !begins || !d.adopt(p, false) {
		d.Unknowns.Add(foreign)
		return nil, nil
	}
	r := &run{ID: string(p.run)}
	if err := event.CheckID("runId", r.ID); err != nil {
		return nil, err
	}
	if len(d.Runs) >= maxRuns {
		return nil, errRuns
	}
	d.Runs = append(d.Runs, r)
	// The gateway recognizes the run by this id in the history of the session.
	d.emit(r, event.Event{Type: event.TurnUpdate, Body: &event.Body{Upstream: &event.Upstream{Run: r.ID}}})
	return r, nil
}

// adopt reports whether a frame's session belongs to the conversation: it is the first run's session, one that such a session
// spawned, or missing. If only a response has named the first run so far, a frame of that run (isKnown) decides its session.
func (d *decoder) adopt(p *payload, isKnown bool) bool {
	if len(p.session) == 0 {
		return true
	}
	// With the client's own sessions, their list decides; otherwise the first run's session counts as the conversation's.
	spawner := len(d.Sessions) == 0 && (isKnown || len(d.Runs) == 0)
	if len(d.OwnSessions) > 0 {
		spawner = d.owns(string(p.session))
	}
	for _, s := range d.Sessions {
		if s == string(p.session) {
			return true
		}
		spawner = spawner || s == string(p.spawnedBy)
	}
	if spawner {
		d.Sessions = append(d.Sessions, string(p.session))
	}
	return spawner
}
