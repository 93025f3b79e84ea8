package feed

import (
	"context"
	"log/slog"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// Log is what a feed needs of the journal.
type Log interface {
	// Read returns a log's events after a seq in ascending seq, compacted where the log is settled. It stops after about
	// limit bytes (0: no limit), and Stretch.More says so; it returns one event at least if there is one.
	// All of one Stretch is of one moment.
	Read(ctx context.Context, conversation string, after int64, limit int) (Stretch, error)
}

// Stretch is a piece of a log.
type Stretch struct {
	Epoch string
	// Head is the seq of the log's last event. Events up to Settled may be merged ones; those above never are. Those up to
	// Trimmed are gone. Truncated is the seq of the last truncate.
	Head, Compacted, Trimmed, Truncated int64
	Events                              []event.Event
	// Terms ascend in First; the last is also that of the next event. There may be none.
	Terms []Term
	// More says that events up to Head are missing because of the limit.
	HasMore bool
}

// Config bounds what feeds hold. The zero value takes the defaults.
type Config struct {
	// TailEvents and TailBytes bound the recent events that each feed holds.
	TailEvents, TailBytes int
	// Idle is how many feeds that nobody holds are kept for the next reader. Negative: none.
	Idle int
	// Window bounds a snapshot, where no unfinished turn begins earlier, and a page in bytes.
	Window transcript.Limits
	// Logger is told of events that don't fit their log. Nothing is logged where it is nil.
	Logger *slog.Logger

	chunk, maxBehind, piece int // for tests: other values of readChunk, MaxBehind and transcript.MaxPiece
}

const (
	// DefaultTailEvents is 40 s of a fast model: a reader that stalls for longer is as well served with whole parts.
	DefaultTailEvents = 2048
	// DefaultTailBytes bounds a tail of large events.
	DefaultTailBytes = 512 << 10
	// DefaultIdle lets a page be loaded anew without reading the log.
	DefaultIdle = 32

	// MaxBehind is how many bytes of merged events a reader that comes back may lie behind. One snapshot holds about 1 MiB.
	MaxBehind = 8 << 20

	// readChunk is how many bytes of a log are read at a time where it need not be one stretch.
	readChunk = 1 << 20
	// settledEvents stay in the tail when the log is settled: readers a moment behind still get the small batch.
	settledEvents = 256
)

func (c *Config) setDefaults() {
	if c.TailEvents <= 0 {
		c.TailEvents = DefaultTailEvents
	}
	if c.TailBytes <= 0 {
		c.TailBytes = DefaultTailBytes
	}
	if c.Idle == 0 {
		c.Idle = DefaultIdle
	}
	if c.Window.Messages <= 0 {
		c.Window.Messages = transcript.DefaultWindow.Messages
	}
	if c.Window.Bytes <= 0 {
		c.Window.Bytes = transcript.DefaultWindow.Bytes
	}
	if c.chunk == 0 {
		c.chunk, c.maxBehind, c.piece = readChunk, MaxBehind, transcript.MaxPiece
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}
