package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// schedules is the number of random histories. LEAT_FULL=1 runs fullSchedules, LEAT_SEED=n runs a single one with a trace.
const (
	schedules     = 1200
	fullSchedules = 20000
)

// TestEveryViewerSeesTheLog runs random histories of a conversation with several viewers that are disconnected, stall, reload,
// resume from any cursor and page back, while the log is compacted, trimmed, restored and evicted from memory. When a viewer is
// up to date, its transcript must equal the log's fold from its first message on. At the end, after paging back, it must equal
// the whole log.
func TestEveryViewerSeesTheLog(t *testing.T) {
	if s := os.Getenv("LEAT_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		w := play(seed, true)
		t.Log(strings.Join(w.trace, "\n"))
		if w.fault != "" {
			t.Fatal(w.fault)
		}
		return
	}
	n := uint64(schedules)
	if os.Getenv("LEAT_FULL") != "" {
		n = fullSchedules
	}
	seen := counts{}
	for seed := range n {
		w := play(seed, false)
		seen.add(w.counts)
		if w.fault != "" {
			w = play(seed, true)
			t.Fatalf("seed %d (LEAT_SEED=%d repeats it): %s\n%s", seed, seed, w.fault, strings.Join(w.trace, "\n"))
		}
	}
	t.Logf("%+v", seen)
	// Schedules that never reach the interesting states would pass too, so they are counted.
	for name, n := range map[string]int{
		"snapshots": seen.snapshots, "batches from the tail": seen.tail, "batches from the log": seen.log, "cuts": seen.cuts, "pages": seen.pages,
		"pages refused": seen.refused, "pieces": seen.pieces, "operations that span the cursor": seen.spans, "restores": seen.restores, "kills": seen.kills, "trims": seen.trims, "reloads after a truncate": seen.reloads, "writes during a read": seen.meddled,
	} {
		if n == 0 {
			t.Errorf("no schedule had any %s", name)
		}
	}
}

type counts struct {
	snapshots, tail, log, cuts, pages, refused, pieces, spans, restores, kills, trims, reloads, meddled int
}

func (c *counts) add(d counts) {
	c.snapshots += d.snapshots
	c.tail += d.tail
	c.log += d.log
	c.cuts += d.cuts
	c.pages += d.pages
	c.refused += d.refused
	c.pieces += d.pieces
	c.spans += d.spans
	c.restores += d.restores
	c.kills += d.kills
	c.trims += d.trims
	c.reloads += d.reloads
	c.meddled += d.meddled
}

// world is one schedule: a log, the gateway that writes it, and its viewers.
type world struct {
	r       *rand.Rand
	ctx     context.Context
	w       *writer
	log     *fakeLog
	cfg     Config
	reg     *Registry
	feed    *Feed         // the owner's
	waiting []event.Event // committed, and not shown yet
	shown   *oracle       // of what is shown
	head    int64         // the same
	cut     int64         // seq of the last truncate that is shown
	backup  *fakeLog
	was     *writer // when the backup was made
	viewers []*viewer
	tell    bool
	reading bool // the log, for a viewer
	trace   []string
	fault   string
	counts
}

// viewer is a client: its transcript, and the events on their way to it.
type viewer struct {
	name    string
	json    bool // reads bytes, as over a network; else it is in the process
	t       transcript.Transcript
	cursor  Cursor
	earlier []Cursor // since the last snapshot
	page    *Page    // asked for and not yet there
	before  string   // which page
	conn    int
	late    []lateFrame
	seen    map[string]int64 // what it has seen of each thing, as of which seq
}

type lateFrame struct {
	conn   int
	events []event.Event
}

func play(seed uint64, tell bool) *world {
	r := rand.New(rand.NewPCG(seed, 2))
	w := &world{r: r, tell: tell, ctx: context.Background(), w: &writer{r: r, o: newOracle(), epoch: 1}, log: &fakeLog{epoch: "e1"}}
	w.cfg = Config{
		TailEvents: pick(r, 1, 7, 1000), TailBytes: 1 << 20, Idle: pick(r, -1, 1), Window: transcript.Limits{Messages: pick(r, 1, 3, 3), Bytes: pick(r, 600, 1<<20)},
		chunkSize: pick(r, 1, 300, 1<<20), behindLimit: pick(r, 1<<20, 1<<20, 1<<20, 500), pieceSize: pick(r, 4, 5, 1<<20),
	}
	w.start()
	for i := range 3 {
		w.viewers = append(w.viewers, &viewer{name: fmt.Sprintf("v%d", i), json: i > 0})
	}
	length := int64(6 + r.IntN(60))
	for w.log.head < length && w.fault == "" {
		for range 1 + r.IntN(5) {
			w.write()
		}
		w.happen()
		for _, v := range w.viewers {
			w.visit(v)
		}
	}
	if w.fault == "" {
		w.show()
	}
	for _, v := range w.viewers {
		w.drain(v)
		w.pageBack(v)
	}
	return w
}

func (w *world) say(format string, args ...any) {
	if w.tell {
		w.trace = append(w.trace, fmt.Sprintf(format, args...))
	}
}

func (w *world) fail(format string, args ...any) {
	if w.fault == "" {
		w.fault = fmt.Sprintf(format, args...)
	}
}

// start is the start of a gateway, or its recovery of a conversation.
func (w *world) start() {
	w.reg = NewRegistry(w.log, w.cfg)
	w.acquire()
}

func (w *world) acquire() {
	w.log.afterRead = w.meanwhile
	f, err := w.reg.Acquire(w.ctx, "c")
	if err != nil {
		w.fail("acquire: %v", err)
		return
	}
	if f.Head() != w.log.head {
		w.fail("acquired at %d, the log is at %d", f.Head(), w.log.head)
	}
	w.feed, w.waiting = f, nil
	w.shown, w.head, w.cut = w.w.o, w.log.head, w.log.truncated
}

// show publishes what is committed.
func (w *world) show() {
	if len(w.waiting) > 0 {
		w.say("SHOW up to %d", w.log.head)
	}
	if err := w.feed.Publish(w.waiting); err != nil {
		w.fail("publish: %v", err)
	}
	w.waiting, w.shown, w.head, w.cut = nil, w.w.o, w.log.head, w.log.truncated
	if w.feed.short {
		w.reloads++
	}
}

// write commits the next events and publishes them, unless the gateway dies in between.
func (w *world) write() {
	show := w.r.IntN(5) > 0
	if !show && len(w.waiting) == 0 {
		w.shown = w.w.o.clone()
	}
	events := w.log.append(w.w.next()...)
	for _, e := range events {
		w.w.o.apply(e)
		w.say("write %s", texts{e})
	}
	if w.r.IntN(40) == 0 {
		w.kills++
		w.say("KILL before %d is shown", events[0].Seq)
		w.start()
		return
	}
	w.waiting = append(w.waiting, events...)
	if show {
		w.show()
	}
}

// meanwhile changes the log between a read and the use of its result.
func (w *world) meanwhile() {
	if !w.reading || w.r.IntN(8) > 0 {
		return
	}
	w.reading = false // while it reads no more than once
	w.meddled++
	w.say("MEANWHILE")
	w.write()
	w.show()
	if w.w.turn == "" && w.r.IntN(2) == 0 {
		w.say("COMPACT %d", w.log.head)
		w.log.compact()
		w.feed.setCompacted(w.log.head)
	}
}

// trim removes some of the compacted events while nobody uses the feed. The next Acquire finds the log changed.
func (w *world) trim() {
	w.trims++
	upto := w.log.compacted - w.r.Int64N(w.log.compacted)/2
	w.say("TRIM %d", upto)
	w.log.trim(upto)
	w.feed.Release()
	w.acquire()
}

// happen performs one random event of the log or the gateway.
func (w *world) happen() {
	x := w.r.IntN(100)
	if x < 32 && len(w.waiting) > 0 {
		w.show()
	}
	switch {
	case x < 12:
		if w.w.turn == "" { // as the gateway promises
			w.say("COMPACT %d", w.log.head)
			w.log.compact()
			if w.r.IntN(3) > 0 {
				w.feed.setCompacted(w.log.head)
			}
		}
	case x < 16:
		w.say("BACKUP %d", w.log.head)
		w.backup, w.was = w.log.copyOf(), w.w.clone()
	case x < 20 && w.backup != nil:
		w.restores++
		n := w.w.n
		epoch := w.w.epoch + 1
		w.log, w.w = w.backup.copyOf(), w.was.clone()
		w.w.n, w.w.epoch, w.log.epoch = n, epoch, fmt.Sprintf("e%d", epoch)
		w.say("RESTORE %s %d", w.log.epoch, w.log.head)
		w.start()
	case x < 22 && w.log.compacted > 0:
		w.trim()
	case x < 26: // the owner gives the conversation up, and takes it again
		w.say("LOST")
		w.feed.Close(ErrLost)
		if _, err := w.feed.Poll(w.ctx, "", 0); !errors.Is(err, ErrLost) {
			w.fail("a lost feed gives %v", err)
		}
		w.feed.Release()
		w.acquire()
	case x < 32: // no reads or writes for a while
		w.say("IDLE")
		w.feed.Release()
		w.acquire()
	}
}

// visit performs one step of a viewer, unless it is stalled.
func (w *world) visit(v *viewer) {
	if w.fault != "" {
		return
	}
	switch x := w.r.IntN(100); {
	case x < 45:
		w.poll(v, -1)
	case x < 65:
		w.poll(v, w.r.IntN(5))
	case x < 68:
		w.say("%s RELOAD", v.name)
		*v = viewer{name: v.name, json: v.json, conn: v.conn + 1}
	case x < 72 && len(v.earlier) > 0:
		v.cursor = pick(w.r, v.earlier...)
		w.say("%s resumes from %s", v.name, v.cursor)
	case x < 75:
		w.strange(v)
	}
	if len(v.late) > 0 && w.r.IntN(3) == 0 {
		f := v.late[0]
		v.late = v.late[1:]
		w.receive(v, f.conn, f.events) // of a connection that it has left
	}
	w.turnPage(v)
}

// strange resumes with a cursor that this log never issued. The viewer must get a snapshot.
func (w *world) strange(v *viewer) {
	c := pick(w.r, Cursor("x.1"), "", "1", "e1.", "e1.-1", "e1.01", NewCursor(w.log.epoch, w.head+1), NewCursor(w.log.epoch+"x", 1), NewCursor(w.log.epoch, 1<<50))
	b, err := w.feed.Poll(w.ctx, c, 0)
	if err != nil || b == nil || !b.Reset {
		w.fail("cursor %q: batch %+v, error %v; want a snapshot", c, b, err)
	}
	_ = v
}

// poll takes the next batch up to its event number cut, or all of it if cut is -1.
func (w *world) poll(v *viewer, cut int) {
	_, after, ok := v.cursor.Parse()
	mustReset := !ok || !strings.HasPrefix(string(v.cursor), w.log.epoch+".") || after > w.head || after < w.cut || after < w.log.trimmed
	before, feed := w.log.reads, w.feed
	w.reading = true
	b, err := w.feed.Poll(w.ctx, v.cursor, pick(w.r, 0, 1, 20, 60, 200, 1000))
	meddled := !w.reading
	w.reading = false
	if err != nil {
		if feed != w.feed { // the gateway was killed meanwhile
			return
		}
		w.fail("%s: poll %s: %v", v.name, v.cursor, err)
		return
	}
	if b == nil {
		w.compare(v)
		return
	}
	tooFar := w.cfg.behindLimit < 1<<20 && w.log.reads > before // then a snapshot will do
	if b.Reset != mustReset && !(b.Reset && (tooFar || meddled)) {
		w.fail("%s: at %s reset is %v, should be %v (truncated %d, trimmed %d)", v.name, v.cursor, b.Reset, mustReset, w.cut, w.log.trimmed)
		return
	}
	f := w.frame(v, b)
	switch {
	case f == nil:
		return
	case b.Reset:
		w.snapshots++
	case w.log.reads > before:
		w.log_(f, after)
	default:
		w.counts.tail++
	}
	w.say("%s %s after %s upto %s cut %d: %s", v.name, f.Type, v.cursor, f.Cursor, cut, texts(f.Events))
	if b.Reset {
		if cut < 0 {
			v.t.Reset(f.Transcript)
			if epoch, _, _ := v.cursor.Parse(); epoch != w.log.epoch {
				v.seen = map[string]int64{}
			}
			v.cursor, v.earlier = f.Cursor, nil
			w.unsaid(v)
		}
		return
	}
	if b.Upto <= after || b.Upto > w.head {
		w.fail("%s: batch after %d goes up to %d, what is shown to %d", v.name, after, b.Upto, w.head)
	}
	if cut < 0 || cut >= len(f.Events) {
		w.receive(v, v.conn, f.Events)
		v.earlier = append(v.earlier, v.cursor)
		v.cursor = f.Cursor
		return
	}
	w.cuts++
	w.receive(v, v.conn, f.Events[:cut])
	v.late = append(v.late, lateFrame{v.conn, f.Events[cut:]})
	v.conn++
}

func (w *world) log_(f *frame, after int64) {
	w.counts.log++
	for _, e := range f.Events {
		if e.Seq > f.Seq || e.FirstSeq() <= after {
			w.spans++
		}
	}
}

// frame returns the batch as the viewer decodes it.
func (w *world) frame(v *viewer, b *Batch) *frame {
	for _, e := range b.Events {
		if e.Type == event.ConversationTruncate {
			w.fail("%s gets a truncate", v.name)
		}
	}
	if !v.json {
		f := &frame{Type: "batch", Cursor: b.Cursor, Seq: b.Upto, Events: b.Events, Transcript: b.Snapshot, Reset: b.Reset}
		if b.Reset {
			f.Type = "snapshot"
		}
		return f
	}
	bytes, err := b.Encode(JSON)
	if err != nil {
		w.fail("%s: encode: %v", v.name, err)
		return nil
	}
	f, err := ParseFrame(bytes)
	if err != nil {
		w.fail("%s: %v: %s", v.name, err, bytes)
		return nil
	}
	if f.Cursor != b.Cursor || f.Seq != b.Upto || f.Reset != b.Reset {
		w.fail("%s: frame %s for batch up to %s", v.name, bytes, b.Cursor)
	}
	for _, e := range f.Events {
		if e.Partial {
			w.pieces++
		}
	}
	return f
}

// receive delivers events as to a client, which drops those of a connection that it has left.
func (w *world) receive(v *viewer, conn int, events []event.Event) {
	if conn != v.conn {
		return
	}
	for i := range events {
		if err := v.t.Apply(&events[i]); err != nil {
			w.fail("%s: %v in %s", v.name, err, texts(events[i:i+1]))
		}
	}
	w.unsaid(v)
}

// unsaid checks that nothing goes back for a viewer, whatever was lost or sent again.
func (w *world) unsaid(v *viewer) {
	if epoch, _, _ := v.cursor.Parse(); epoch != w.log.epoch {
		return // it doesn't know yet that the log was replaced
	}
	if d := w.shown.unsaid(&v.t, v.seen, w.log.trimmed); d != "" {
		w.fail("%s: %s", v.name, d)
	}
}

// turnPage requests an older page, or takes one that was requested before.
func (w *world) turnPage(v *viewer) {
	if v.page == nil && len(v.t.Messages) > 0 && v.t.Earlier && w.r.IntN(8) == 0 && strings.HasPrefix(string(v.cursor), w.log.epoch+".") {
		v.before = v.t.Messages[0].ID
		feed := w.feed
		w.reading = true
		p, err := w.feed.Page(w.ctx, v.before, 1+w.r.IntN(3))
		w.reading = false
		if feed != w.feed { // the gateway was killed meanwhile
			return
		}
		if errors.Is(err, ErrNoMessage) && (w.w.o.messages[v.before] == nil || w.log.trimmed > 0) {
			return
		}
		if err != nil {
			w.fail("%s: page: %v", v.name, err)
			return
		}
		v.page = w.overTheWire(v, p)
	}
	if v.page != nil && w.r.IntN(2) == 0 {
		w.add(v)
	}
}

func (w *world) overTheWire(v *viewer, p *Page) *Page {
	if !v.json {
		return p
	}
	bytes, err := json.Marshal(p)
	if err != nil {
		w.fail("%s: encode page: %v", v.name, err)
	}
	q := &Page{}
	if err := json.Unmarshal(bytes, q); err != nil {
		w.fail("%s: decode page: %v: %s", v.name, err, bytes)
	}
	return q
}

func (w *world) add(v *viewer) bool {
	p := v.page
	v.page = nil
	if !p.Add(&v.t, v.before, v.cursor) {
		w.refused++
		return false
	}
	w.pages++
	w.unsaid(v)
	w.say("%s page of %d before %s as of %d", v.name, len(p.Messages), v.before, p.Seq)
	return true
}

// compare checks a viewer that is up to date.
func (w *world) compare(v *viewer) {
	if d := w.shown.differ(&v.t, w.log.trimmed); d != "" {
		w.fail("%s at %s: %s", v.name, v.cursor, d)
	}
}

func (w *world) drain(v *viewer) {
	for range 400 {
		if w.fault != "" {
			return
		}
		if v.cursor == w.feed.Cursor() {
			w.compare(v)
			return
		}
		w.poll(v, -1)
	}
	w.fail("%s does not get beyond %s", v.name, v.cursor)
}

// pageBack fetches all older messages. The viewer must then have the whole conversation.
func (w *world) pageBack(v *viewer) {
	for n := 0; v.t.Earlier && w.fault == ""; n++ {
		if n > 100 {
			w.fail("%s pages without end", v.name)
			return
		}
		v.before = v.t.Messages[0].ID
		p, err := w.feed.Page(w.ctx, v.before, 2)
		if err != nil {
			if !errors.Is(err, ErrNoMessage) || w.log.trimmed == 0 {
				w.fail("%s: page before %s: %v", v.name, v.before, err)
			}
			return
		}
		v.page = w.overTheWire(v, p)
		if !w.add(v) {
			w.fail("%s: fresh page before %s refused", v.name, v.before)
		}
		w.compare(v)
	}
	if len(v.t.Messages) < len(w.w.o.order) && w.fault == "" {
		if first := w.w.o.order[len(w.w.o.order)-len(v.t.Messages)-1]; w.w.o.messages[first].seq > w.log.trimmed {
			w.fail("%s has paged back to the beginning and does not hold %s", v.name, first)
		}
	}
}

// texts are events that are only formatted if they are printed.
type texts []event.Event

func (t texts) String() string {
	var b strings.Builder
	for _, e := range t {
		j, err := json.Marshal(e)
		fmt.Fprintf(&b, "\n        %s", j)
		if err != nil {
			fmt.Fprint(&b, err)
		}
	}
	return b.String()
}
