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
	Stored func(tenant, owner string) (ofOwner, ofTenant int64)
	// Now tells the time; nil is time.Now.
	Now func() time.Time
}

// Quota counts. It may be used from several goroutines.
type Quota struct {
	opt Options

	mu            sync.Mutex // protects what follows
	users         map[Who]*account
	tenants       map[string]*account
	turns         map[string]turn     // those that count, by id
	conversations map[string][]string // ids of their turns that count
	swept         time.Time
}

// account is what one user or tenant uses.
type account struct {
	turns, viewers int
	reserved       int64 // bytes that were granted and are not in the store yet
	messages       ratelimit.Bucket
}

type turn struct {
	who          Who
	conversation string
}

// sweepEvery is how often accounts that use nothing are forgotten; each takes some 100 bytes.
const sweepEvery = time.Minute

// New returns a quota of which nothing is used.
func New(opt Options) *Quota {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Stored == nil {
		opt.Stored = func(string, string) (int64, int64) { return 0, 0 }
	}
	return &Quota{
		opt: opt, users: map[Who]*account{}, tenants: map[string]*account{},
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
	Owner Who
}

// side is an account with the limits that bind it.
type side struct {
	scope  Scope
	limits *Limits
	*account
}

// sides are the accounts that something of a user's counts in; none of the operator's does. Callers hold the lock.
func (q *Quota) sides(w Who) []side {
	if w.operator() {
		return nil
	}
	u, t := q.users[w], q.tenants[w.Tenant]
	if u == nil {
		u = &account{}
		q.users[w] = u
	}
	if t == nil {
		t = &account{}
		q.tenants[w.Tenant] = t
	}
	return []side{{User, &q.opt.User, u}, {Tenant, &q.opt.Tenant, t}}
}

// Take grants all of what is needed, or nothing with an [*Exceeded]. The caller ends the grant. The operator is granted
// everything, also in a user's name: what it says in a user's conversation is not refused.
func (q *Quota) Take(w Who, n Need) (*Grant, error) {
	g := &Grant{q: q, who: w, need: n}
	if w.operator() {
		g.need = Need{}
		return g, nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.opt.Now()
	q.sweep(now)
	mine, owners := q.sides(w), q.sides(n.Owner)
	if n.Turn != "" {
		for _, s := range mine {
			if s.limits.Turns > 0 && s.turns >= s.limits.Turns {
				return nil, &Exceeded{Resource: Turns, Scope: s.scope, Limit: int64(s.limits.Turns)}
			}
		}
	}
	if n.Bytes > 0 {
		if err := q.fits(n.Owner, owners, n.Bytes); err != nil {
			return nil, err
		}
	}
	if n.Message {
		// The last, since it takes what it checks.
		for i, s := range mine {
			if wait, ok := s.messages.Take(now, s.limits.rate()); !ok {
				for _, before := range mine[:i] {
					before.messages.Return(before.limits.rate())
				}
				return nil, &Exceeded{Resource: Messages, Scope: s.scope, Limit: int64(s.limits.Messages), Wait: wait}
			}
		}
	}
	if n.Turn != "" {
		q.begin(n.Turn, turn{w, n.Conversation})
	}
	for _, s := range owners {
		s.reserved += n.Bytes
	}
	return g, nil
}

// fits reports whether an owner and its tenant may store more. Callers hold the lock.
func (q *Quota) fits(owner Who, sides []side, bytes int64) error {
	if owner.operator() || !q.BoundsBytes() {
		return nil
	}
	mine, all := q.opt.Stored(owner.Tenant, owner.Subject)
	operators, _ := q.opt.Stored(owner.Tenant, "")
	for _, s := range sides {
		used := mine
		if s.scope == Tenant {
			used = all - operators
		}
		if s.limits.Bytes > 0 && used+s.reserved+bytes > s.limits.Bytes {
			return &Exceeded{Resource: Bytes, Scope: s.scope, Limit: s.limits.Bytes, Used: used}
		}
	}
	return nil
}

// Grant is what was granted for one thing. Exactly one of Keep and Cancel counts, the first.
type Grant struct {
	q    *Quota
	who  Who
	need Need
	over bool
}

// Keep says that what it was granted for has come about, or may have: its bytes are in the store, and its turn lives until
// [Quota.End] or [Quota.Sync].
func (g *Grant) Keep() { g.finish(false) }

// Cancel says that nothing came of it, and gives everything back.
func (g *Grant) Cancel() { g.finish(true) }

func (g *Grant) finish(undo bool) {
	g.q.mu.Lock()
	defer g.q.mu.Unlock()
	if g.over {
		return
	}
	g.over = true
	for _, s := range g.q.sides(g.need.Owner) {
		s.reserved -= g.need.Bytes
	}
	if !undo {
		return
	}
	if g.need.Message {
		for _, s := range g.q.sides(g.who) {
			s.messages.Return(s.limits.rate())
		}
	}
	if g.need.Turn != "" {
		g.q.end(g.need.Turn)
	}
}

// Begin counts a turn without asking whether it may be: one that has to be, since what it answers is in the log already.
func (q *Quota) Begin(w Who, id, conversation string) {
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
func (q *Quota) Sync(conversation string, unfinished map[string]Who) {
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
	if _, known := q.turns[id]; known || t.who.operator() {
		return
	}
	for _, s := range q.sides(t.who) {
		s.turns++
	}
	q.turns[id] = t
	q.conversations[t.conversation] = append(q.conversations[t.conversation], id)
}

// end counts a turn no more. Callers hold the lock.
func (q *Quota) end(id string) {
	t, known := q.turns[id]
	if !known {
		return
	}
	for _, s := range q.sides(t.who) {
		s.turns--
	}
	delete(q.turns, id)
	left := q.conversations[t.conversation]
	for i := range left {
		if left[i] == id {
			left = append(left[:i:i], left[i+1:]...)
			break
		}
	}
	if q.conversations[t.conversation] = left; len(left) == 0 {
		delete(q.conversations, t.conversation)
	}
}

// View counts a viewer until leave is called; a second call of leave does nothing. The error is an [*Exceeded].
func (q *Quota) View(w Who) (leave func(), err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sweep(q.opt.Now())
	sides := q.sides(w)
	for _, s := range sides {
		if s.limits.Viewers > 0 && s.viewers >= s.limits.Viewers {
			return nil, &Exceeded{Resource: Viewers, Scope: s.scope, Limit: int64(s.limits.Viewers)}
		}
	}
	for _, s := range sides {
		s.viewers++
	}
	var once sync.Once
	return func() {
		once.Do(func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			for _, s := range q.sides(w) {
				s.viewers--
			}
		})
	}, nil
}

// sweep forgets accounts that use nothing, now and then. Callers hold the lock.
func (q *Quota) sweep(now time.Time) {
	if now.Sub(q.swept) < sweepEvery {
		return
	}
	q.swept = now
	for w, a := range q.users {
		if a.idle(now) {
			delete(q.users, w)
		}
	}
	for t, a := range q.tenants {
		if a.idle(now) {
			delete(q.tenants, t)
		}
	}
}

func (a *account) idle(now time.Time) bool {
	return a.turns == 0 && a.viewers == 0 && a.reserved == 0 && a.messages.Full(now)
}
