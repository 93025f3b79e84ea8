package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// sender is a decoder that knows by what a client sends which of the turns on its connection are the client's.
type sender interface{ Sent(frame []byte) }

// feedSent hands a decoder what a client of a recorder's file has sent, and goes back to where the input began. All of it is read
// before the first frame is decoded, since turns of other sessions may come before the client sends anything. An input that
// can't be read twice is left as it is. An empty client is the first one on which anything came in.
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
		if len(bytes.TrimSpace(line)) > 0 && (json.Unmarshal(line, &l) != nil || l.Dir == "") {
			break // another form, or a damaged line, which is an error when it is decoded
		}
		switch name := l.client(); {
		case l.Dir == "out" && len(l.Frame) <= maxRequest:
			requests = append(requests, l)
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
			to.Sent(requests[i].Frame)
		}
	}
	_, err = s.Seek(start, io.SeekStart)
	return err
}

// maxRequest bounds the requests that are looked at, in bytes: those with files are larger.
const maxRequest = 64 << 10

// sentLine is a line of a recorder.
type sentLine struct {
	Client json.RawMessage `json:"c"`
	Dir    string          `json:"dir"`
	Frame  json.RawMessage `json:"frame"`
}

func (l *sentLine) client() string {
	var s string
	if json.Unmarshal(l.Client, &s) == nil {
		return s
	}
	return string(l.Client)
}
