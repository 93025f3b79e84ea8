package sse

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// AppendEvent appends one event to b. An empty id or name is left out. If id or name has CR, LF or NUL, which would end the field
// early or make readers ignore it, AppendEvent returns b unchanged and [ErrField].
func AppendEvent(b []byte, id, name string, data []byte) ([]byte, error) {
	if strings.ContainsAny(id, "\r\n\x00") || strings.ContainsAny(name, "\r\n\x00") {
		return b, ErrField
	}
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	if name != "" {
		b = append(append(append(b, "event: "...), name...), '\n')
	}
	b = appendLines(b, "data: ", data)
	return append(b, '\n'), nil
}

// AppendComment appends a comment, which readers ignore. Servers send comments as heartbeats.
func AppendComment(b []byte, text string) []byte {
	b = appendLines(b, ": ", []byte(text))
	return append(b, '\n')
}

// AppendRetry appends the hint how long a reader should wait before it reconnects, in whole milliseconds.
func AppendRetry(b []byte, d time.Duration) []byte {
	b = strconv.AppendInt(append(b, "retry: "...), max(0, d.Milliseconds()), 10)
	return append(b, "\n\n"...)
}

// appendLines appends each line of data after a prefix. Readers remove one space after the colon, so the prefix ends in a space, or
// a line that begins with one would lose it.
func appendLines(b []byte, prefix string, data []byte) []byte {
	for {
		b = append(b, prefix...)
		i := bytes.IndexAny(data, "\r\n")
		if i < 0 {
			return append(append(b, data...), '\n')
		}
		b = append(append(b, data[:i]...), '\n')
		if data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n' {
			i++
		}
		data = data[i+1:]
	}
}
