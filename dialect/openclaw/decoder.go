package openclaw

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
)

// name is that of the format, in configurations and requests.
const name = "openclaw"

// Dialect describes the frames of an OpenClaw gateway.
func Dialect() dialect.Dialect {
	return dialect.Dialect{
		Name:    name,
		Summary: "WebSocket frames of an OpenClaw gateway, protocol 3 and 4",
		Framing: dialect.Lines,
		Decoder: func() dialect.Decoder { return &decoder{} },
	}
}

// decoder decodes the frames of one connection. Everything that outlives a frame is in its state, which the caller stores with
// the events. It must not be used concurrently.
type decoder struct {
	state
	base decoding.Base
}

var (
	_ dialect.Decoder = (*decoder)(nil)
	_ dialect.Counter = (*decoder)(nil)
)

// Decode implements [dialect.Decoder]. The error of an invalid frame is a [dialect.Error] with the number of the
// frame. Every later call returns it again.
func (d *decoder) Decode(f dialect.Frame) ([]event.Event, error) {
	return d.base.Decode(name, &d.Frames, false, f, d.decodeFrame)
}

// decodeFrame decodes one frame and checks the limits of the state afterwards.
func (d *decoder) decodeFrame(f dialect.Frame) error {
	var fr frame
	err := fr.parse(f.Data)
	if err == nil {
		err = d.route(&fr)
	}
	if err == nil {
		err = d.bounded()
	}
	if err != nil {
		return decoding.Fault("invalid frame", err)
	}
	return nil
}

// Close implements [dialect.Decoder]. A connection may end at any time, so the stream is complete if a run has ended and none
// is open. Runs that are open get their buffered text but no end: whether they continue on the gateway is only known
// to the owner of the connection.
func (d *decoder) Close() ([]event.Event, error) {
	isOver := len(d.Runs) == 0 && d.HasEnded
	return d.base.Close(&isOver, d.flushOpen)
}

// flushOpen emits what the open runs have buffered.
func (d *decoder) flushOpen() {
	for _, r := range d.Runs {
		d.finishText(r, r.text(), true)
		d.release(r)
	}
}

// Unknown implements [dialect.Counter]. It includes frames of other conversations, so it isn't zero in normal
// operation.
func (d *decoder) Unknown() dialect.Unknown { return d.Unknowns }

// SawRequest decodes a request of the client whose connection is decoded. A gateway sends the runs of all sessions to every
// client. After the client has sent a message, only runs of the sessions of its messages are decoded; before that, those whose
// history it has read. It must be called before the responses to the request are decoded. Names that are too long,
// and those beyond maxSessions, are ignored.
func (d *decoder) SawRequest(frame []byte) {
	var q struct {
		Method string `json:"method"`
		Params struct {
			Session string `json:"sessionKey"`
		} `json:"params"`
	}
	if json.Unmarshal(frame, &q) != nil || q.Params.Session == "" || len(q.Params.Session) > maxSession {
		return
	}
	switch {
	case q.Method == "chat.send" && !d.Sends:
		d.OwnSessions, d.Sends = nil, true
	case q.Method == "chat.send", q.Method == "chat.history" && !d.Sends:
	default:
		return
	}
	if key := strings.ToLower(q.Params.Session); !slices.Contains(d.OwnSessions, key) && len(d.OwnSessions) < maxSessions {
		d.OwnSessions = append(d.OwnSessions, key)
	}
}

// owns reports whether the client uses the session. The gateway puts the agent before the name that the client sends.
// For example, the client sends "main" and the frames have "agent:ops:main".
func (d *decoder) owns(session string) bool {
	return slices.ContainsFunc(d.OwnSessions, func(ownSession string) bool {
		return session == ownSession || strings.HasSuffix(session, ":"+ownSession)
	})
}
