package sse

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// AppendEvent appends one event to b. An empty id or name gives no such line. It returns b unchanged and [ErrField] where
// id or name has CR, LF or NUL, which would end the field early or make readers ignore it.
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

// AppendComment appends a comment, which readers ignore: a heartbeat.
func AppendComment(b []byte, text string) []byte {
	b = appendLines(b, ": ", []byte(text))
	return append(b, '\n')
}

// AppendRetry appends the hint how long a reader waits before it connects again, in whole milliseconds.
func AppendRetry(b []byte, d time.Duration) []byte {
	b = strconv.AppendInt(append(b, "retry: "...), max(0, d.Milliseconds()), 10)
	return append(b, "\n\n"...)
}

// appendLines writes each line of data with a prefix; the space at its end keeps one at the beginning of a line.
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
