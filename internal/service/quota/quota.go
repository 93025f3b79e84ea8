package quota

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/base/ratelimit"
)

// Options configures a [Quota].
type Options struct {
	// User limits each user, Tenant all users of a tenant together. Users without a tenant form one tenant with an empty name.
	User, Tenant Limits
	// StoredBytes returns the stored bytes of an owner and of its whole tenant. It is required if bytes are limited. It is
	// called with the quota's lock held, so it must be fast and must not call the quota.
	StoredBytes func(tenant, owner string) (ofOwner, ofTenant int64)
	// Clock returns the current time. If it is nil, time.Now is used.
	Clock func() time.Time
}

// Quota counts the usage of all accounts. All methods are safe for concurrent use.
type Quota struct {
	opt Options

	mu            sync.Mutex // protects the fields below
	users         map[Account]*counters
	tenants       map[string]*counters
	turns         map[string]turn     // counted turns by id
	conversations map[string][]string // ids of the counted turns, by conversation
	swept         time.Time
}

// counters are the usage of one user or tenant.
type counters struct {
	turns, viewers int
	reserved       int64 // bytes of open reservations, which aren't in the store yet
	messages       ratelimit.Bucket
}

type turn struct {
	account      Account
	conversation string
}

// sweepEvery is the interval at which idle counters are removed. Each takes about 100 bytes.
const sweepEvery = time.Minute

// New returns a quota without usage.
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

// BoundsTurns reports whether turns are limited. If they aren't, the caller need not determine how many there are.
func (q *Quota) BoundsTurns() bool { return q.opt.User.Turns > 0 || q.opt.Tenant.Turns > 0 }

// BoundsBytes reports whether bytes are limited.
func (q *Quota) BoundsBytes() bool { return q.opt.User.Bytes > 0 || q.opt.Tenant.Bytes > 0 }

// Need is the usage that a request would add.
type Need struct {
	// Turn is the id of the turn that starts in Conversation, or empty if none starts.
	Turn, Conversation string
	Message            bool
	// Bytes are added to what Owner stores. Owner may differ from the account that sends the message.
	Bytes int64
	Owner Account
}

// side is one of the two levels at which an account is limited: the user or its tenant.
type side struct {
	scope  scope
	limits *Limits
	*counters
}

// sides returns the counters and limits that apply to an account, creating the counters if necessary. The operator has none.
// The caller holds the lock.
func (q *Quota) sides(w Account) []side {
	if w.operator() {
		return nil
	}
	return []side{{User, &q.opt.User, countersOf(q.users, w)}, {Tenant, &q.opt.Tenant, countersOf(q.tenants, w.Tenant)}}
}

// countersOf returns the counters of a user or tenant, and adds them if necessary.
func countersOf[K comparable](table map[K]*counters, key K) *counters {
	if table[key] == nil {
		table[key] = &counters{}
	}
	return table[key]
}

// Take reserves everything in n, or returns an [*Exceeded] and reserves nothing. The caller must call Commit or Cancel on the
// reservation. An operator's request is always granted, even if it writes to a user's conversation.
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
		// Last, because checking the rate also consumes a token.
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

// fits returns an error if the owner or its tenant can't store more bytes. The operator's own conversations don't count toward
// the tenant. The caller holds the lock.
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

// Reservation is the usage granted to one request. The first call of Commit or Cancel decides; later calls have no effect.
type Reservation struct {
	q          *Quota
	account    Account
	need       Need
	isFinished bool
}

// Commit confirms that the request was written, or may have been. Its bytes are in the store now, and its turn counts until
// [Quota.End] or [Quota.Sync].
func (g *Reservation) Commit() { g.finish(false) }

// Cancel releases everything, because the request wasn't written.
func (g *Reservation) Cancel() { g.finish(true) }

// finish releases the reserved bytes in both cases, because a committed request's bytes are counted by the store from then on.
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

// Begin counts a turn without checking the limits. It is for turns that must run because their message is already in the log.
func (q *Quota) Begin(w Account, id, conversation string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.begin(id, turn{w, conversation})
}

// End stops counting a turn. It has no effect if the turn isn't counted.
func (q *Quota) End(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.end(id)
}

// Sync replaces the counted turns of a conversation by its unfinished turns according to the log. The gateway calls it at the
// start, and after a commit with an unknown result.
func (q *Quota) Sync(conversation string, unfinished map[string]Account) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, id := range slices.Clone(q.conversations[conversation]) { // end changes the list
		if _, open := unfinished[id]; !open {
			q.end(id)
		}
	}
	for id, w := range unfinished {
		q.begin(id, turn{w, conversation})
	}
}

// begin counts a turn unless it is already counted. The caller holds the lock.
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

// end stops counting a turn. The caller holds the lock.
func (q *Quota) end(id string) {
	t, exists := q.turns[id]
	if !exists {
		return
	}
	for _, s := range q.sides(t.account) {
		s.turns--
	}
	delete(q.turns, id)
	ids := slices.DeleteFunc(q.conversations[t.conversation], func(other string) bool { return other == id })
	if q.conversations[t.conversation] = ids; len(ids) == 0 {
		delete(q.conversations, t.conversation)
	}
}

// View counts a viewer until leave is called. Calling leave again has no effect. The error is an [*Exceeded].
func (q *Quota) View(w Account) (leave func(), err error) {
	if w.operator() {
		return func() {}, nil
	}
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
	hasLeft := false
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if !hasLeft {
			for _, s := range q.sides(w) {
				s.viewers--
			}
		}
		hasLeft = true
	}, nil
}

// sweep removes the counters of idle accounts, at most once per sweepEvery. The caller holds the lock.
func (q *Quota) sweep(at time.Time) {
	if at.Sub(q.swept) < sweepEvery {
		return
	}
	q.swept = at
	maps.DeleteFunc(q.users, func(_ Account, c *counters) bool { return c.idle(at) })
	maps.DeleteFunc(q.tenants, func(_ string, c *counters) bool { return c.idle(at) })
}

func (a *counters) idle(at time.Time) bool {
	return a.turns == 0 && a.viewers == 0 && a.reserved == 0 && a.messages.Full(at)
}
