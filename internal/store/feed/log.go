package feed

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// logReader is the part of the journal that a feed uses.
type logReader interface {
	// Read returns a log's events after a seq, in ascending order; compacted ones up to Stretch.Compacted. It stops after about
	// limit bytes (0 means no limit) and then sets HasMore. It returns at least one event if there is one. A Stretch is consistent:
	// it shows the log at one moment.
	Read(ctx context.Context, conversation string, after int64, limit int) (Stretch, error)
}

// Stretch is a piece of a log.
type Stretch struct {
	Epoch string
	// Head is the seq of the log's last event. Events up to Compacted may be merged, later ones aren't. Events up to Trimmed were
	// removed. Truncated is the seq of the last truncate.
	Head, Compacted, Trimmed, Truncated int64
	Events                              []event.Event
	// Terms ascend in FirstSeq. The last one also applies to the next event. They may be empty.
	Terms []Term
	// HasMore says that events up to Head are missing because of the limit.
	HasMore bool
}

// Config limits the memory of feeds. The zero value uses the defaults.
type Config struct {
	// TailEvents and TailBytes limit the recent events of each feed.
	TailEvents, TailBytes int
	// Idle is the number of unreferenced feeds that stay in memory for the next reader. If it is negative, none do.
	Idle int
	// Window limits a page, and a snapshot unless an unfinished turn begins earlier.
	Window transcript.Limits
	// Logger logs events that don't fit their log. If it is nil, they aren't logged.
	Logger *slog.Logger

	chunkSize, behindLimit, pieceSize int // tests override readChunk, maxBehind and transcript.MaxPiece
}

const (
	// defaultTailEvents is 5 minutes of a fast model. A reader that stalls for longer reads the log.
	defaultTailEvents = 16 << 10
	// defaultTailBytes limits a tail of large events. An append to a text takes 32 bytes, whatever its length.
	defaultTailBytes = 512 << 10
	// defaultIdle lets a browser page reload without reading the log.
	defaultIdle = 32

	// maxBehind is the size of the merged events, in bytes, that a returning reader gets at most. If there are more, it gets a
	// snapshot, which is about 1 MiB.
	maxBehind = 8 << 20

	// readChunk is the size of the pieces in which a log is read, in bytes.
	readChunk = 1 << 20
	// compactedEvents stay in the tail when the log is compacted, so that readers a moment behind still get a small batch.
	compactedEvents = 4096
)

// setDefaults replaces zero values. The limits that only tests set are replaced together.
func (c *Config) setDefaults() {
	if c.TailEvents <= 0 {
		c.TailEvents = defaultTailEvents
	}
	if c.TailBytes <= 0 {
		c.TailBytes = defaultTailBytes
	}
	c.Idle = cmp.Or(c.Idle, defaultIdle)
	if c.Window.Messages <= 0 {
		c.Window.Messages = transcript.DefaultWindow.Messages
	}
	if c.Window.Bytes <= 0 {
		c.Window.Bytes = transcript.DefaultWindow.Bytes
	}
	if c.chunkSize == 0 {
		c.chunkSize, c.behindLimit, c.pieceSize = readChunk, maxBehind, transcript.MaxPiece
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}
