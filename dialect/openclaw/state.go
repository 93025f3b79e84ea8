package openclaw

import (
	"encoding/json"
	"fmt"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// state is all that a decoder holds.
type state struct {
	Frames      int      `json:"frames"`             // seen, for the number in errors
	Protocol    int      `json:"protocol,omitempty"` // 0 is not known yet, and read as 3
	Sessions    []string `json:"sessions,omitempty"` // of the conversation
	OwnSessions []string `json:"own,omitempty"`      // sessions that the client itself sends to, as it calls them; empty: not known
	Sends       bool     `json:"sends,omitempty"`    // Own are sessions of messages, not of histories alone
	Runs        []*run   `json:"runs,omitempty"`     // open ones, in order of appearance
	EndedRuns   []string `json:"ended,omitempty"`    // the last maxEnded ended runs
	HasEnded    bool     `json:"whole,omitempty"`    // a run has ended
	// Seen counts the frames that mean nothing here: of unknown kinds, and of other conversations.
	Unknowns dialect.Unknown `json:"unknown,omitempty"`
}

// All that a gateway names lies in the state, which goes with every commit. Nobody reads more than these, and a gateway
// that sends more means harm.
const (
	// maxEnded bounds how many ended runs are remembered. Frames that come after a run's end come within seconds of it.
	maxEnded = 64
	// maxRuns and maxSessions bound the runs that are open, and the sessions that they run in.
	maxRuns     = 64
	maxSessions = 64
	// maxSession is the longest key that a gateway takes, in bytes.
	maxSession = 512
	// maxParts bounds the parts of a run's message: texts, reasoning, tools and media together.
	maxParts = 8192
	// maxRead bounds how many texts of histories a run has.
	maxRead = 8192
)

// bounded says what the state holds too much of, after a frame; nil where it does not.
func (d *decoder) bounded() error {
	if len(d.Sessions) > maxSessions {
		return errSessions
	}
	for _, s := range d.Sessions {
		if len(s) > maxSession {
			return errLong
		}
	}
	for _, r := range d.Runs {
		if err := r.bounded(); err != nil {
			return err
		}
	}
	return nil
}

// bounded says what a run has too much of.
func (r *run) bounded() error {
	switch {
	case len(r.Phase) > event.MaxID, len(r.Model) > event.MaxID, len(r.Disposition) > event.MaxID:
		return errLong
	case len(r.Texts)+len(r.Thoughts)+len(r.Tools)+len(r.Media)+len(r.Files) > maxParts:
		return errParts
	case len(r.Read) > maxRead:
		return errRows
	}
	return nil
}

// run is one run of the agent.
type run struct {
	ID         string `json:"id"`
	Seq        int64  `json:"seq,omitempty"` // the highest of its agent frames
	HasMessage bool   `json:"started,omitempty"`
	Phase      string `json:"phase,omitempty"`
	Model      string `json:"model,omitempty"`
	Output     int64  `json:"output,omitempty"` // tokens

	Texts    []*segment `json:"texts,omitempty"`
	Thoughts []*segment `json:"thoughts,omitempty"`
	Tools    []*tool    `json:"tools,omitempty"`
	Media    []string   `json:"media,omitempty"` // shown ones
	Files    []string   `json:"files,omitempty"` // ones to be shown once it is known where in the last text they stand

	// Read are the texts of histories that are among what is shown, each without what follows it in its segment.
	Read []readText `json:"read,omitempty"`

	Silent bool `json:"silent,omitempty"` // the model said NO_REPLY
	// Disposition and Error are what the run's lifecycle said last: visible, silent or empty, and why it failed.
	Disposition string `json:"disposition,omitempty"`
	Error       string `json:"error,omitempty"`
}

// segment is one text or reasoning part: what the model said between two tool calls.
type segment struct {
	Part       string         `json:"part"`
	Item       string         `json:"item,omitempty"` // key of a segment that the gateway names, where this came from elsewhere
	InPreamble bool           `json:"told,omitempty"` // a preamble has repeated it
	Kind       event.PartKind `json:"kind"`
	Open       bool           `json:"open,omitempty"` // the part has started
	Visible    snapshot       `json:"shown,omitzero"`
	Tight      tight          `json:"tight,omitzero"`
	// Held waits behind what is shown; see screen.
	Buffered string `json:"held,omitempty"`
	// Over says that no further text belongs to it, though no other segment has begun.
	IsOver bool `json:"over,omitempty"`
	// Split is how often a file stands in the segment. Each time its text goes on in another part.
	Continuations int `json:"split,omitempty"`
}

// tool is one tool call.
type tool struct {
	Call    string          `json:"call"`
	HasName bool            `json:"named,omitempty"`
	IsOver  bool            `json:"over,omitempty"`   // its result has come
	Direct  bool            `json:"direct,omitempty"` // tool frames came, so that command_output only repeats
	Input   bool            `json:"input,omitempty"`
	Title   string          `json:"title,omitempty"`
	State   event.PartState `json:"state,omitempty"`
	Output  snapshot        `json:"output,omitzero"`
	Tight   tight           `json:"tight,omitzero"`
}

// State implements [dialect.Decoder].
func (d *decoder) State() ([]byte, error) {
	b, err := json.Marshal(&d.state)
	if err != nil {
		return nil, fmt.Errorf("openclaw: encode state: %w", err)
	}
	return b, nil
}

// Restore implements [dialect.Decoder].
func (d *decoder) Restore(b []byte) error {
	var s state
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("openclaw: restore state: %w", err)
	}
	*d = decoder{state: s}
	return nil
}
