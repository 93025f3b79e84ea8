package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/transcript"
)

// follower folds the SSE events that it receives into a transcript, like a client.
type follower struct {
	conn   *viewer // its socket blocks
	buf    []byte  // received but not yet parsed
	piece  []byte  // reused by read
	frames int     // frames so far
	bytes  int     // bytes of complete SSE events and comments so far
	t      transcript.Transcript
	cursor feed.Cursor
}

// follow connects a follower. Its reads fail after arriveLimit.
func follow(a access) (*follower, error) {
	v, err := open(a)
	if err != nil {
		return nil, err
	}
	tv := unix.NsecToTimeval(int64(arriveLimit))
	if err := unix.SetsockoptTimeval(v.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		return nil, errors.Join(err, unix.Close(v.fd))
	}
	return &follower{conn: v}, nil
}

func (f *follower) close() error { return unix.Close(f.conn.fd) }

// next reads one frame and returns its data, which is valid until the next call. It doesn't fold the frame, so that the caller can time the
// read without the fold.
func (f *follower) next() ([]byte, error) {
	for {
		if i := bytes.Index(f.buf, []byte("\n\n")); i >= 0 {
			raw := f.buf[:i+2]
			f.buf = f.buf[i+2:]
			f.bytes += len(raw)
			for line := range bytes.Lines(raw) {
				// A frame of the gateway has one data line, since its JSON contains no line feeds.
				if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
					f.frames++
					return data, nil
				}
			}
			continue // a comment
		}
		if err := f.read(); err != nil {
			return nil, fmt.Errorf("read frame %d: %w", f.frames+1, err)
		}
	}
}

// read appends what one read of the socket returns to buf.
func (f *follower) read() error {
	// A snapshot has megabytes. Pieces of 64 KiB keep the number of reads low.
	if f.piece == nil {
		f.piece = make([]byte, 64<<10)
	}
	var n int
	err := interrupted(func() (err error) {
		n, err = unix.Read(f.conn.fd, f.piece)
		return err
	})
	if err == nil && n == 0 {
		err = errEnded
	}
	if err != nil {
		return err
	}
	_, err = f.conn.framing.decode(f.piece[:n], func(b []byte) error {
		f.buf = append(f.buf, b...)
		return nil
	})
	return err
}

// fold applies a frame to the transcript. It ignores a hello, which contains no text.
func (f *follower) fold(data []byte) error {
	if bytes.HasPrefix(data, []byte(`{"type":"hello"`)) {
		return nil
	}
	frame, err := feed.ParseFrame(data)
	if err != nil {
		return err
	}
	f.cursor = frame.Cursor
	return frame.Apply(&f.t)
}

// advance reads and folds frames until the text has at least n bytes.
func (f *follower) advance(n int) error {
	for f.length() < n {
		data, err := f.next()
		if err == nil {
			err = f.fold(data)
		}
		if err != nil {
			return fmt.Errorf("received %d of %d bytes of text, up to cursor %s: %w", f.length(), n, f.cursor, err)
		}
	}
	return nil
}

// length returns the length of the newest message's text without building it. advance calls it after each frame.
func (f *follower) length() (n int) {
	if len(f.t.Messages) == 0 {
		return 0
	}
	for _, p := range f.t.Messages[len(f.t.Messages)-1].Parts {
		n += p.Len(event.Text)
	}
	return n
}

// text returns the text of the newest message.
func (f *follower) text() string {
	if len(f.t.Messages) == 0 {
		return ""
	}
	var b strings.Builder
	for _, p := range f.t.Messages[len(f.t.Messages)-1].Parts {
		b.WriteString(p.Text(event.Text))
	}
	return b.String()
}

// checkTokens compares a text with the first tokens that a producer sent, except their times.
func checkTokens(text string, tokens int, pad string) error {
	w := tokenLen + len(pad)
	if len(text) != tokens*w {
		return fmt.Errorf("text of %d bytes, want %d", len(text), tokens*w)
	}
	for i := range tokens {
		t := text[i*w : (i+1)*w]
		if t[0] != mark || t[1:7] != fmt.Sprintf("%06d", i) || t[tokenLen:] != pad {
			return fmt.Errorf("token %d is %q", i, t[:tokenLen])
		}
	}
	return nil
}
