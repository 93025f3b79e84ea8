//go:build unix

package killer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
)

// tryAgain is the wait of users before they repeat a failed command.
const tryAgain = 30 * time.Millisecond

// talker sends messages to a conversation, sometimes two at once, and waits for the answers.
type talker struct {
	w            *world
	conversation string
	prompts      []string
	answers      []*answer // by prompt
	rng          *rand.Rand
	sent         int
}

func (u *talker) run(r reader) {
	for !u.w.isCalm() {
		var turns []string
		for range 1 + u.rng.IntN(2) {
			turn, ok := u.send()
			if !ok {
				return
			}
			turns = append(turns, turn)
		}
		for _, turn := range turns {
			if !await(u.w.ctx, r, ended(turn)) {
				return
			}
		}
	}
}

// send repeats a message with one key until it is acknowledged.
func (u *talker) send() (turn string, ok bool) {
	n := u.rng.IntN(len(u.prompts))
	u.sent++
	cmd := leat.Command{Type: "send", Key: fmt.Sprintf("send-%d", u.sent), Message: &leat.Message{Text: u.prompts[n]}}
	again := u.rng.IntN(4) == 0 // though it was acknowledged, as one does who has missed that
	for {
		ack, err := u.w.client.Do(u.w.ctx, u.conversation, cmd)
		switch {
		case err == nil && turn != "" && (ack.Turn != turn || !ack.Repeated):
			u.w.fail("%s: the same message again made turn %s, not %s", u.conversation, ack.Turn, turn)
			return "", false
		case err == nil && again:
			turn, again = ack.Turn, false
			u.w.expect(u.conversation, turn, u.answers[n])
			continue
		case err == nil:
			u.w.expect(u.conversation, ack.Turn, u.answers[n])
			return ack.Turn, true
		}
		var refused *leat.Error
		if errors.As(err, &refused) && !refused.Temporary() {
			u.w.fail("%s: send refused: %v", u.conversation, err)
			return "", false
		}
		if !u.w.pause(tryAgain) {
			return "", false
		}
	}
}

// producer pushes turns one after another and reconnects wherever its connection breaks.
type producer struct {
	w            *world
	conversation string
	dialect      string
	body         func(n int) []byte
	expect       func(n int, body []byte) *answer
	rng          *rand.Rand
	// leaves makes it disconnect in the middle of its first turn for good.
	leaves bool
	stays  bool          // its own connections never break
	pace   time.Duration // between two lines; linePace where 0
	gate   *gate         // nil: nothing holds it up
	n      int
}

// gate blocks a body at an offset until it is opened.
type gate struct {
	at   int64
	open <-chan struct{}
}

// linePace is the time between two lines of a body.
const linePace = 15 * time.Millisecond

func (p *producer) run(r reader) {
	for !p.w.isCalm() {
		p.n++
		if !p.turn(r) || p.leaves {
			return
		}
	}
}

// delivery is the body of a turn that is being pushed.
type delivery struct {
	p     *producer
	body  []byte
	want  *answer
	turn  string
	acked int64 // that the gateway said was committed
	over  bool

	mu   sync.Mutex
	sent int64 // furthest byte handed to a connection; one that was left may still be reading the body
}

func (d *delivery) note(at int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sent = max(d.sent, at)
}

func (d *delivery) furthest() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sent
}

func (p *producer) turn(r reader) bool {
	d := &delivery{p: p, body: p.body(p.n)}
	d.want = p.expect(p.n, d.body)
	for !d.over {
		if err := d.attempt(); err != nil {
			var wrong *misdeed
			if errors.As(err, &wrong) {
				p.w.fail("%s: pushed turn %s: %v", p.conversation, d.turn, err)
				return false
			}
			p.w.trace.add("%s: producer: %v", p.conversation, err)
			if p.leaves && d.turn != "" {
				break
			}
		}
		if p.w.ctx.Err() != nil || (!d.over && !p.w.pause(tryAgain)) {
			return false
		}
	}
	return await(p.w.ctx, r, ended(d.turn))
}

// misdeed is an error that shows a fault of the gateway.
type misdeed struct{ error }

func forbidden(format string, args ...any) error { return &misdeed{fmt.Errorf(format, args...)} }

// attempt makes one connection: the first with the turn's key, later ones from the gateway's offset.
func (d *delivery) attempt() error {
	if d.turn == "" {
		path := "/api/conversations/" + d.p.conversation + "/turns?dialect=" + d.p.dialect
		return d.upload(http.MethodPost, path, 0, http.Header{"Idempotency-Key": {fmt.Sprintf("turn-%d", d.p.n)}})
	}
	path := "/api/turns/" + d.turn + "/ingest"
	resp, err := d.do(d.p.w.ctx, http.MethodHead, path, nil, nil)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	switch {
	case resp.StatusCode >= 500:
		return errors.New(resp.Status)
	case resp.StatusCode != http.StatusOK:
		return forbidden("HEAD answers %s", resp.Status)
	case resp.Header.Get("Leat-Turn-State") == "ended":
		d.over = true
		return nil
	}
	offset, err := strconv.ParseInt(resp.Header.Get("Upload-Offset"), 10, 64)
	if err != nil {
		return forbidden("HEAD gives no offset: %v", err)
	}
	if offset < d.acked {
		return forbidden("HEAD asks for bytes from %d; up to %d was acknowledged", offset, d.acked)
	}
	if sent := d.furthest(); offset > sent {
		return forbidden("HEAD gives %d; only %d bytes were ever sent", offset, sent)
	}
	return d.upload(http.MethodPatch, path, offset, http.Header{"Upload-Offset": {strconv.FormatInt(offset, 10)}})
}

// upload sends the body from an offset and reads the gateway's acknowledgements meanwhile.
func (d *delivery) upload(method, path string, from int64, h http.Header) error {
	ctx, cancel := context.WithCancel(d.p.w.ctx)
	defer cancel()
	body := &paced{ctx: ctx, rest: d.body[from:], sent: from, stop: -1, pace: linePace, gate: d.p.gate}
	if d.p.pace > 0 {
		body.pace = d.p.pace
	}
	if d.p.leaves {
		body.stop = int64(len(d.body)) / 2
	} else if !d.p.stays && d.p.rng.IntN(3) == 0 { // its own connection breaks
		body.stop = from + d.p.rng.Int64N(int64(len(d.body))-from+1)
	}
	body.note = d.note
	body.cut = cancel
	resp, err := d.do(ctx, method, path, body, h)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if turn := resp.Header.Get("Leat-Turn"); turn != "" && d.turn == "" {
		d.turn = turn
		d.want.left = d.p.leaves
		d.p.w.expect(d.p.conversation, turn, d.want)
	}
	switch resp.StatusCode {
	case http.StatusOK, http.StatusCreated:
	case http.StatusConflict, http.StatusNotFound:
		if d.turn == "" || resp.StatusCode == http.StatusNotFound {
			return forbidden("%s answers %s", method, resp.Status)
		}
		return errors.New(resp.Status) // HEAD tells more
	default:
		if resp.StatusCode < 500 {
			return forbidden("%s answers %s", method, resp.Status)
		}
		return errors.New(resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var ack struct {
			Offset int64
			Ended  bool
		}
		if err := json.Unmarshal(lines.Bytes(), &ack); err != nil {
			return fmt.Errorf("acknowledgement %q: %w", lines.Bytes(), err) // cut in the middle
		}
		if ack.Offset < from && !ack.Ended && ack.Offset != 0 {
			return forbidden("acknowledgement of byte %d on a connection that began at %d", ack.Offset, from)
		}
		d.acked = max(d.acked, ack.Offset)
		d.over = d.over || ack.Ended
	}
	if d.over {
		return nil
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return errors.New("the connection ended before the turn")
}

func (d *delivery) do(ctx context.Context, method, path string, body io.Reader, h http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, d.p.w.program.url()+path, body)
	if err != nil {
		return nil, err
	}
	for k, v := range h {
		req.Header[k] = v
	}
	return http.DefaultClient.Do(req)
}

// paced is a body that is sent line by line, and whose sender may break the connection.
type paced struct {
	ctx  context.Context
	rest []byte
	sent int64
	stop int64 // -1: never
	pace time.Duration
	gate *gate
	note func(at int64)
	cut  func()
}

func (b *paced) Read(p []byte) (int, error) {
	if b.stop >= 0 && b.sent >= b.stop {
		b.cut()
		return 0, errCut
	}
	if len(b.rest) == 0 {
		return 0, io.EOF
	}
	n := bytes.IndexByte(b.rest, '\n') + 1
	if n == 0 {
		n = len(b.rest)
	}
	n = min(n, len(p))
	if b.stop >= 0 {
		n = int(min(int64(n), b.stop-b.sent)) // also in the middle of a line
	}
	select {
	case <-time.After(b.pace):
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
	if b.gate != nil && b.sent >= b.gate.at {
		select {
		case <-b.gate.open:
		case <-b.ctx.Done():
			return 0, b.ctx.Err()
		}
	}
	copy(p, b.rest[:n])
	b.rest = b.rest[n:]
	b.sent += int64(n)
	b.note(b.sent)
	return n, nil
}
