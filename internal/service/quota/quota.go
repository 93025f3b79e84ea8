package quota

import (
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/base/ratelimit"
)

// Options are what a [Quota] is made of.
type Options struct {
	// User bounds each user by itself, Tenant all users of each tenant together. Users without a tenant are those of one
	// tenant without a name.
	User, Tenant Limits
	// Stored tells how many bytes an owner has in the store, and its tenant; needed where bytes are bound.
	StoredBytes func(tenant, owner string) (ofOwner, ofTenant int64)
	// Now tells the time; nil is time.Now.
	Clock func() time.Time
}

// Quota counts. It may be used from several goroutines.
type Quota struct {
	opt Options

	mu            sync.Mutex // protects what follows
	users         map[Account]*counters
	tenants       map[string]*counters
	turns         map[string]turn     // those that count, by id
	conversations map[string][]string // ids of their turns that count
	swept         time.Time
}

// account is what one user or tenant uses.
type counters struct {
	turns, viewers int
	reserved       int64 // bytes that were granted and are not in the store yet
	messages       ratelimit.Bucket
}

type turn struct {
	account      Account
	conversation string
}

// sweepEvery is how often accounts that use nothing are forgotten; each takes some 100 bytes.
const sweepEvery = time.Minute

// New returns a quota of which nothing is used.
func New(opt Options) *Quota {
	if opt.Clock == nil {
		opt.Clock = time.Now
	}
	if opt.StoredBytes == nil {
		opt.StoredBytes = func(string, string) (int64, int64) { return 0, 0 }
	}
	return &Quota{
		opt: opt, users: map[Account]*counters{}, tenants: map[string]*counters{},
		turns: map[string]turn{}, conversations: map[string][]string{},
	}
}

// BoundsTurns and BoundsBytes report whether there is a limit on them: without one there is no need to find out how many
// there are.
func (q *Quota) BoundsTurns() bool { return q.opt.User.Turns > 0 || q.opt.Tenant.Turns > 0 }

// BoundsBytes is said above.
func (q *Quota) BoundsBytes() bool { return q.opt.User.Bytes > 0 || q.opt.Tenant.Bytes > 0 }

// Need is what something takes.
type Need struct {
	// Turn is the id of a turn that begins in a conversation; empty where none does.
	Turn, Conversation string
	Message            bool
	// Bytes go to what Owner stores.
	Bytes int64
	Owner Account
}

// side is an account with the limits that bind it.
type side struct {
	scope  scope
	limits *Limits
	*counters
}

// sides are the accounts that something of a user's counts in; none of the operator's does. Callers hold the lock.
func (q *Quota) sides(w Account) []side {
	if w.operator() {
		return nil
	}
	u, t := q.users[w], q.tenants[w.Tenant]
	if u == nil {
		u = &counters{}
		q.users[w] = u
	}
	if t == nil {
		t = &counters{}
		q.tenants[w.Tenant] = t
	}
	return []side{{User, &q.opt.User, u}, {Tenant, &q.opt.Tenant, t}}
}

// Take grants all of what is needed, or nothing with an [*Exceeded]. The caller ends the grant. The operator is granted
// everything, also in a user's name: what it says in a user's conversation is not refused.
func (q *Quota) Take(w Account, n Need) (*Reservation, error) {
	g := &Reservation{q: q, account: w, need: n}
	if w.operator() {
		g.need = Need{}
		return g, nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.opt.Clock()
	q.sweep(at)
	senderSides, ownerSides := q.sides(w), q.sides(n.Owner)
	if n.Turn != "" {
		for _, s := range senderSides {
			if s.limits.Turns > 0 && s.turns >= s.limits.Turns {
				return nil, &Exceeded{Resource: Turns, Scope: s.scope, Limit: int64(s.limits.Turns)}
			}
		}
	}
	if n.Bytes > 0 {
		if err := q.fits(n.Owner, ownerSides, n.Bytes); err != nil {
			return nil, err
		}
	}
	if n.Message {
		// The last, since it takes what it checks.
		for i, s := range senderSides {
			if wait, ok := s.messages.Take(at, s.limits.rate()); !ok {
				for _, before := range senderSides[:i] {
					before.messages.Return(before.limits.rate())
				}
				return nil, &Exceeded{Resource: Messages, Scope: s.scope, Limit: int64(s.limits.Messages), Wait: wait}
			}
		}
	}
	if n.Turn != "" {
		q.begin(n.Turn, turn{w, n.Conversation})
	}
	for _, s := range ownerSides {
		s.reserved += n.Bytes
	}
	return g, nil
}

// fits reports whether an owner and its tenant may store more. Callers hold the lock.
func (q *Quota) fits(owner Account, sides []side, bytes int64) error {
	if owner.operator() || !q.BoundsBytes() {
		return nil
	}
	ownerBytes, tenantBytes := q.opt.StoredBytes(owner.Tenant, owner.Subject)
	operatorBytes, _ := q.opt.StoredBytes(owner.Tenant, "")
	for _, s := range sides {
		bytesInStore := ownerBytes
		if s.scope == Tenant {
			bytesInStore = tenantBytes - operatorBytes
		}
		if s.limits.Bytes > 0 && bytesInStore+s.reserved+bytes > s.limits.Bytes {
			return &Exceeded{Resource: Bytes, Scope: s.scope, Limit: s.limits.Bytes, StoredBytes: bytesInStore}
		}
	}
	return nil
}

// Grant is what was granted for one thing. Exactly one of Keep and Cancel counts, the first.
type Reservation struct {
	q          *Quota
	account    Account
	need       Need
	isFinished bool
}

// Keep says that what it was granted for has come about, or may have: its bytes are in the store, and its turn lives until
// [Quota.End] or [Quota.Sync].
func (g *Reservation) Commit() { g.finish(false) }

// Cancel says that nothing came of it, and gives everything back.
func (g *Reservation) Cancel() { g.finish(true) }

func (g *Reservation) finish(undo bool) {
	g.q.mu.Lock()
	defer g.q.mu.Unlock()
	if g.isFinished {
		return
	}
	g.isFinished = true
	for _, s := range g.q.sides(g.need.Owner) {
		s.reserved -= g.need.Bytes
	}
	if !undo {
		return
	}
	if g.need.Message {
		for _, s := range g.q.sides(g.account) {
			s.messages.Return(s.limits.rate())
		}
	}
	if g.need.Turn != "" {
		g.q.end(g.need.Turn)
	}
}

// Begin counts a turn without asking whether it may be: one that has to be, since what it answers is in the log already.
func (q *Quota) Begin(w Account, id, conversation string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.begin(id, turn{w, conversation})
}

// End says that a turn has ended. One that does not count changes nothing.
func (q *Quota) End(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.end(id)
}

// Sync says which turns of a conversation are unfinished, by id, as the log has it: at the start, and after a commit of
// which nobody knows whether it came about. Whatever else was counted of the conversation counts no more.
func (q *Quota) Sync(conversation string, unfinished map[string]Account) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, id := range append([]string(nil), q.conversations[conversation]...) {
		if _, open := unfinished[id]; !open {
			q.end(id)
		}
	}
	for id, w := range unfinished {
		q.begin(id, turn{w, conversation})
	}
}

// begin counts a turn, once. Callers hold the lock.
func (q *Quota) begin(id string, t turn) {
	if _, exists := q.turns[id]; exists || t.account.operator() {
		return
	}
	for _, s := range q.sides(t.account) {
		s.turns++
	}
	q.turns[id] = t
	q.conversations[t.conversation] = append(q.conversations[t.conversation], id)
}

// end counts a turn no more. Callers hold the lock.
func (q *Quota) end(id string) {
	t, exists := q.turns[id]
	if !exists {
		return
	}
	for _, s := range q.sides(t.account) {
		s.turns--
	}
	delete(q.turns, id)
	ids := q.conversations[t.conversation]
	for i := range ids {
		if ids[i] == id {
			ids = append(ids[:i:i], ids[i+1:]...)
			break
		}
	}
	if q.conversations[t.conversation] = ids; len(ids) == 0 {
		delete(q.conversations, t.conversation)
	}
}

// View counts a viewer until leave is called; a second call of leave does nothing. The error is an [*Exceeded].
func (q *Quota) View(w Account) (leave func(), err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sweep(q.opt.Clock())
	sides := q.sides(w)
	for _, s := range sides {
		if s.limits.Viewers > 0 && s.viewers >= s.limits.Viewers {
			return nil, &Exceeded{Resource: Viewers, Scope: s.scope, Limit: int64(s.limits.Viewers)}
		}
	}
	for _, s := range sides {
		s.viewers++
	}
	var leaveOnce sync.Once
	return func() {
		leaveOnce.Do(func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			for _, s := range q.sides(w) {
				s.viewers--
			}
		})
	}, nil
}

// sweep forgets accounts that use nothing, now and then. Callers hold the lock.
func (q *Quota) sweep(at time.Time) {
	if at.Sub(q.swept) < sweepEvery {
		return
	}
	q.swept = at
	for w, a := range q.users {
		if a.idle(at) {
			delete(q.users, w)
		}
	}
	for t, a := range q.tenants {
		if a.idle(at) {
			delete(q.tenants, t)
		}
	}
}

func (a *counters) idle(at time.Time) bool {
	return a.turns == 0 && a.viewers == 0 && a.reserved == 0 && a.messages.Full(at)
}
