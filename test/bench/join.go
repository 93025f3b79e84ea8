package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/transcript"
)

const (
	joinFrames = 2    // target: frames until the text is complete, a hello and a snapshot
	joinBytes  = 1.05 // target: bytes relative to the JSON of the text
	joinP99    = 20   // target, ms
	joinRate   = 50   // tokens a second while viewers join
)

// benchJoin measures how fast a viewer gets the text of a long turn that is still running. Viewers join one after another. A join
// ends when the viewer has all text that existed before it connected. Each viewer starts with the text length that the previous one
// received, so the measured text grows with the turn.
func benchJoin(ctx context.Context, e *env) (ms []measure, err error) {
	const id = "join"
	g, p, err := e.startTurn(ctx, id)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close(), g.stop()) }()
	begin := time.Now()
	for from := 0; from < e.size.joinEvents; from += joinChunk {
		if err := p.burst(from, min(joinChunk, e.size.joinEvents-from)); err != nil {
			return nil, err
		}
	}
	// A push returns before its events are stored, so a viewer waits for them.
	text, err := awaitText(ctx, g, id, e.size.joinEvents)
	if err != nil {
		return nil, err
	}
	filled := time.Since(begin)

	// The turn goes on while viewers join, because that is the case that needs the feed: a snapshot at some seq and the events from
	// there on must fit together.
	tokensCtx, stop := context.WithCancel(ctx)
	sent := make(chan error, 1)
	go func() { sent <- p.sendSlowly(tokensCtx) }()
	profiled := g.profileFor(ctx, "join", time.Second)
	joins, err := joinAll(ctx, g, id, len(text), e.size.joinTimes)
	stop()
	if err := errors.Join(err, <-sent, profiled()); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, g.logTail())
	}
	// The baseline transfers the median of the bytes that the joins received.
	raw, err := rawJoin(ctx, int(median(joins.bytes)), e.size.joinTimes)
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	q := quantiles(joins.times, 0.5, 0.99)
	return []measure{
		{name: "events of the turn", value: float64(joins.events)},
		{name: "JSON of its text", unit: "KB", value: float64(joins.text) / 1000},
		{name: "events a second while it was filled", value: float64(e.size.joinEvents) / filled.Seconds()},
		{name: "frames until joined, at most", value: float64(joins.frames), most: joinFrames},
		{name: "bytes until joined / JSON of the text, at most", unit: "times", value: joins.ratio, most: joinBytes},
		{name: "raw socket, as many bytes, p50", unit: "ms", value: millis(raw[0])},
		{name: "raw socket, as many bytes, p99", unit: "ms", value: millis(raw[1])},
		{name: "leat p50", unit: "ms", value: millis(q[0])},
		{name: "leat p99", unit: "ms", value: millis(q[1]), most: joinP99},
	}, nil
}

// joinChunk is the number of tokens in one write while the turn is filled.
const joinChunk = 100

// joinWord returns token i. It has six bytes, about as many as a model's.
func joinWord(i int) string { return fmt.Sprintf(" %05d", i%100_000) }

// burst sends tokens from to from+n-1 in one write.
func (p *producer) burst(from, n int) error {
	var b bytes.Buffer
	for i := from; i < from+n; i++ {
		b.WriteString(`{"type":"chunk","text":"` + joinWord(i) + `"}` + "\n")
	}
	p.sent = from + n
	if _, err := fmt.Fprintf(p.conn, "%x\r\n%s\r\n", b.Len(), b.Bytes()); err != nil {
		return fmt.Errorf("send tokens from %d: %w", from, err)
	}
	return nil
}

// sendSlowly sends joinRate tokens a second until ctx ends.
func (p *producer) sendSlowly(ctx context.Context) error {
	tick := time.NewTicker(time.Second / joinRate)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		if err := p.burst(p.sent, 1); err != nil {
			return err
		}
	}
}

// follower folds the frames that a viewer receives into a transcript.
type follower struct {
	*viewer
	buf    []byte // received but not yet parsed
	frames int    // frames so far
	bytes  int    // bytes of complete SSE events and comments so far
	t      transcript.Transcript
	cursor feed.Cursor
}

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
		// The buffer grows to the size of a snapshot, megabytes, in few steps: copying it often would be counted as time of the
		// join.
		if cap(f.buf)-len(f.buf) < 64<<10 {
			f.buf = append(make([]byte, 0, 2*len(f.buf)+1<<20), f.buf...)
		}
		n, err := f.r.Read(f.buf[len(f.buf):cap(f.buf)])
		f.buf = f.buf[:len(f.buf)+n]
		if err != nil {
			return nil, fmt.Errorf("read frame %d: %w", f.frames+1, err)
		}
	}
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

// length returns the length of text without building it. The loops that wait for a text call it after each frame.
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

// awaitText follows a conversation until its text has n tokens, checks it, and returns it.
func awaitText(ctx context.Context, g *gateway, id string, n int) (string, error) {
	v, err := watch(ctx, g.addr, id, 0)
	if err != nil {
		return "", err
	}
	defer v.conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = v.conn.Close() })
	defer stop()
	f := &follower{viewer: v}
	for {
		_ = v.conn.SetReadDeadline(time.Now().Add(arriveLimit))
		data, err := f.next()
		if err != nil {
			return "", fmt.Errorf("received %d of %d bytes, up to cursor %s: %w", f.length(), n*len(joinWord(0)), f.cursor, err)
		}
		if err := f.fold(data); err != nil {
			return "", err
		}
		if f.length() >= n*len(joinWord(0)) {
			return f.text(), checkWords(f.text())
		}
	}
}

// checkWords checks that a text consists of whole tokens from the first one on. It compares only the first and the last token, because the
// check runs between timed joins.
func checkWords(text string) error {
	w := len(joinWord(0))
	if len(text)%w != 0 {
		return fmt.Errorf("text of %d bytes doesn't consist of whole tokens", len(text))
	}
	if n := len(text) / w; n > 0 && (text[:w] != joinWord(0) || text[len(text)-w:] != joinWord(n-1)) {
		return fmt.Errorf("text of %d tokens begins with %q and ends with %q", n, text[:w], text[len(text)-w:])
	}
	return nil
}

// joined is the result of joinAll.
type joined struct {
	times  []int64   // nanoseconds of each join
	bytes  []float64 // received by each join
	frames int       // highest number of frames of a join
	ratio  float64   // highest ratio of received bytes to the JSON of the text
	text   int       // length of the JSON of the last join's text
	events int64     // seq at the end of the last join
}

// joinAll joins a conversation several times, each time until the text has the length that the previous join reached, at first have. The time
// of a join includes the connection and all reads, but not the fold.
func joinAll(ctx context.Context, g *gateway, id string, have, times int) (j joined, err error) {
	for range times {
		if err := ctx.Err(); err != nil {
			return j, err
		}
		begin := time.Now()
		v, err := watch(ctx, g.addr, id, 0)
		if err != nil {
			return j, err
		}
		_ = v.conn.SetReadDeadline(time.Now().Add(arriveLimit))
		f := &follower{viewer: v}
		var took time.Duration
		for f.length() < have {
			start := time.Now()
			if took == 0 {
				start = begin
			}
			data, err := f.next()
			took += time.Since(start)
			if err == nil {
				err = f.fold(data)
			}
			if err != nil {
				return j, errors.Join(fmt.Errorf("received %d of %d bytes, up to cursor %s: %w", f.length(), have, f.cursor, err), v.conn.Close())
			}
		}
		if err := errors.Join(checkWords(f.text()), v.conn.Close()); err != nil {
			return j, err
		}
		have = len(f.text())
		quoted, err := json.Marshal(f.text())
		if err != nil {
			return j, err
		}
		_, j.events, _ = f.cursor.Parse()
		j.times = append(j.times, int64(took))
		j.bytes = append(j.bytes, float64(f.bytes))
		j.frames = max(j.frames, f.frames)
		j.text = len(quoted)
		j.ratio = max(j.ratio, float64(f.bytes)/float64(j.text))
	}
	return j, nil
}

// rawJoin is the baseline of a join: it connects to a child, requests and reads size bytes. It returns the p50 and the p99.
func rawJoin(ctx context.Context, size, times int) (q []time.Duration, err error) {
	child, err := startChild("blob", strconv.Itoa(size))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, child.stop()) }()
	b := make([]byte, size)
	var samples []int64
	for range times {
		start := time.Now()
		v, err := dial(ctx, child.addr, 0)
		if err != nil {
			return nil, err
		}
		_, err1 := io.WriteString(v.conn, "GET\n")
		_, err2 := io.ReadFull(v.conn, b)
		samples = append(samples, int64(time.Since(start)))
		if err := errors.Join(err1, err2, v.conn.Close()); err != nil {
			return nil, err
		}
	}
	return quantiles(samples, 0.5, 0.99), nil
}
