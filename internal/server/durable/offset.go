package durable

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/internal/gateway/streams"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/feed"
)

// The offsets that the protocol reserves.
const (
	offsetStart = "-1"
	offsetNow   = "now"
)

// validOffset matches the offsets of all kinds of streams: the position with a fixed width, so that offsets sort as
// text, and what identifies the log that it is a position of.
var validOffset = regexp.MustCompile(`^([0-9]{16})_([0-9a-z]+(?:_[0-9a-z]+)?)$`)

// parseOffset returns the two parts of an offset. The error is for the client.
func parseOffset(offset string) (position int64, log string, err error) {
	parts := validOffset.FindStringSubmatch(offset)
	if parts == nil {
		return 0, "", server.Invalid("the offset %.64q is not one of this server; use %s, %s or a value of %s", offset, offsetStart, offsetNow, headerNextOffset)
	}
	position, err = strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return 0, "", server.Invalid("the offset %.64q has no position", offset)
	}
	return position, parts[2], nil
}

// formatOffset returns the offset of a position.
func formatOffset(position int64, log string) string { return streams.FormatOffset(position, log) }

// offsetOf returns the offset for a cursor. It has the same parts in another order: cursors begin with the epoch, and
// would not sort.
func offsetOf(c feed.Cursor) string {
	epoch, seq, _ := c.Parse()
	log := epoch
	if suffix, ok := strings.CutPrefix(string(c), epoch+"~"); ok {
		term, _, _ := strings.Cut(suffix, ".")
		log += "_" + term
	}
	return formatOffset(seq, log)
}

// cursorOf returns the cursor for an offset of a conversation. The feed decides whether it can be resumed.
func cursorOf(offset string) (feed.Cursor, error) {
	seq, log, err := parseOffset(offset)
	if err != nil {
		return "", err
	}
	return feed.Cursor(fmt.Sprintf("%s.%d", strings.Replace(log, "_", "~", 1), seq)), nil
}
