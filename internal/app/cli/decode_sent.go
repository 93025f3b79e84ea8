package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// sender is implemented by decoders that tell a client's own turns on a shared connection from those of others by the
// client's requests.
type sender interface{ SawRequest(frame []byte) }

// feedSent passes a recorded client's requests to a decoder and rewinds the input. It reads all requests before the first frame is decoded,
// because turns of other sessions may come before the client's first request. Inputs that can't be read twice, such as pipes, are left as
// they are. If client is empty, it is the first one that received a frame.
func feedSent(in io.Reader, client string, to sender) error {
	s, ok := in.(io.Seeker)
	if !ok {
		return nil
	}
	start, err := s.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil // a pipe
	}
	var requests []sentLine
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadBytes('\n')
		var l sentLine
		// Only recordings contain requests; raw bytes of a stream have none, and the decoder does without them.
		if len(bytes.TrimSpace(line)) > 0 && (json.Unmarshal(line, &l) != nil || l.Dir == "") {
			break // another format, or a damaged line, which decoding reports
		}
		switch name := l.client(); {
		case l.Dir == "out" && len(l.Frame) <= maxRequest:
			requests = append(requests, l)
		// recording.NewReader chooses the same client: the first that received a frame.
		case l.Dir == "in" && client == "":
			client = name
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	for i := range requests {
		if requests[i].client() == client {
			to.SawRequest(requests[i].Frame)
		}
	}
	_, err = s.Seek(start, io.SeekStart)
	return err
}

// maxRequest is the largest request that is examined, in bytes. Only requests with files are larger.
const maxRequest = 64 << 10

// sentLine is a line of a recording.
type sentLine struct {
	Client json.RawMessage `json:"c"`
	Dir    string          `json:"dir"`
	Frame  json.RawMessage `json:"frame"`
}

// client returns the name of the connection. A recording may have a string or a number, which is named by its digits.
func (l *sentLine) client() string {
	var s string
	if json.Unmarshal(l.Client, &s) == nil {
		return s
	}
	return string(l.Client)
}
