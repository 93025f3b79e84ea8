package openclaw

import (
	"encoding/json"
	"fmt"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonscan"
)

// state is everything that a decoder remembers between frames. Its JSON is a stored format: turns that were
// interrupted by an update of the gateway are decoded on with it, so names and meanings of its fields must not
// change.
type state struct {
	Frames      int      `json:"frames"`             // frames decoded so far, for the number in errors
	Protocol    int      `json:"protocol,omitempty"` // 0 if not known yet; treated as 3
	Sessions    []string `json:"sessions,omitempty"` // sessions of the conversation
	OwnSessions []string `json:"own,omitempty"`      // sessions that the client uses, by its own names; empty if not known
	Sends       bool     `json:"sends,omitempty"`    // OwnSessions are those of sent messages; otherwise of histories
	Runs        []*run   `json:"runs,omitempty"`     // open ones, in order of appearance
	EndedRuns   []string `json:"ended,omitempty"`    // the last maxEnded ended runs
	HasEnded    bool     `json:"whole,omitempty"`    // a run has ended
	// Unknowns counts ignored frames: those of unknown kinds and of other conversations.
	Unknowns dialect.Unknown `json:"unknown,omitempty"`
}

// The limits of the state. It is stored with every commit, and everything in it comes from the gateway, which may be faulty or malicious.
// They are far above what a run needs.
const (
	// maxEnded is how many ended runs are remembered. Late frames arrive within seconds of a run's end.
	maxEnded = 64
	// maxRuns and maxSessions are how many runs may be open, and in how many sessions.
	maxRuns     = 64
	maxSessions = 64
	// maxSession is the length of the longest session key that a gateway accepts, in bytes.
	maxSession = 512
	// maxParts is how many parts a run's message may have: texts, reasoning, tools and files together.
	maxParts = 8192
	// maxRead is how many texts of histories a run may have.
	maxRead = 8192
)

// bounded returns an error if the state exceeds a limit.
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

// bounded returns an error if the run exceeds a limit.
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

// run is an open run of the agent. When it ends, only its id is remembered.
type run struct {
	ID  string `json:"id"`
	Seq int64  `json:"seq,omitempty"` // of the last agent frame
	// HasMessage means that the start of the run's message was emitted.
	HasMessage bool `json:"started,omitempty"`
	// Phase and Model are the last ones that were emitted, so that repetitions aren't.
	Phase string `json:"phase,omitempty"`
	Model string `json:"model,omitempty"`
	// Output is the number of tokens that usage frames have reported. It counts only if the final frame has no usage.
	Output int64 `json:"output,omitempty"`

	Texts    []*segment `json:"texts,omitempty"`
	Thoughts []*segment `json:"thoughts,omitempty"`
	Tools    []*tool    `json:"tools,omitempty"`
	Media    []string   `json:"media,omitempty"` // URLs of the visible files
	Files    []string   `json:"files,omitempty"` // URLs of deferred files, see deferFile

	// Read are the texts of histories that are visible.
	Read []readText `json:"read,omitempty"`

	Silent bool `json:"silent,omitempty"` // the model wrote NO_REPLY
	// Disposition (visible, silent or empty) and Error are from the run's last lifecycle frame.
	Disposition string `json:"disposition,omitempty"`
	Error       string `json:"error,omitempty"`
}

// segment is a text or reasoning: what the model produced between two tool calls.
type segment struct {
	Part       string         `json:"part"`
	Item       string         `json:"item,omitempty"` // the key with the gateway's item id if Part is another one
	InPreamble bool           `json:"told,omitempty"` // a preamble has repeated the text
	Kind       event.PartKind `json:"kind"`
	// Open means that the current part has started.
	Open bool `json:"open,omitempty"`
	// Visible has the text that was emitted, over all parts of the segment, and Tight the same without white space.
	Visible snapshot `json:"shown,omitzero"`
	Tight   tight    `json:"tight,omitzero"`
	// Buffered is text after the visible one that may turn out to be control syntax, see screen.
	Buffered string `json:"held,omitempty"`
	// IsOver is true if further text begins a new segment.
	IsOver bool `json:"over,omitempty"`
	// Continuations is the number of files inside the segment. After each one, its text continues in another part.
	Continuations int `json:"split,omitempty"`
}

// tool is a tool call. Output is what is visible of its output, and Tight the same without white space. Both are
// cleared when the result is known, because they are in every stored state.
type tool struct {
	Call    string `json:"call"`
	HasName bool   `json:"named,omitempty"`
	IsOver  bool   `json:"over,omitempty"`   // it has a result
	Direct  bool   `json:"direct,omitempty"` // tool frames were received, so command_output is a repetition
	// Input means that the input was emitted. Only then can the part end.
	Input  bool            `json:"input,omitempty"`
	Title  string          `json:"title,omitempty"`
	State  event.PartState `json:"state,omitempty"`
	Output snapshot        `json:"output,omitzero"`
	Tight  tight           `json:"tight,omitzero"`
}

// states writes the decoder's state.
var states = jsonscan.NewWriter[state]()

// State implements [dialect.Decoder]. Copies of texts aren't stored. A restored decoder compares by length and hash
// instead.
func (d *decoder) State() ([]byte, error) {
	b, err := decoding.State(&d.base, states, &d.state)
	if err != nil {
		return nil, fmt.Errorf("openclaw: encode state: %w", err)
	}
	return b, nil
}

// Restore implements [dialect.Decoder]. If it returns an error, the decoder is unchanged.
func (d *decoder) Restore(b []byte) error {
	var s state
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("openclaw: restore state: %w", err)
	}
	*d = decoder{state: s}
	return nil
}
