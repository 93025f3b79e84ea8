package quota_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leat-dev/leat/internal/service/quota"
)

var (
	ann = quota.Account{Tenant: "t", Subject: "ann"}
	bob = quota.Account{Tenant: "t", Subject: "bob"}
	eve = quota.Account{Tenant: "u", Subject: "ann"}
)

// clock is a clock that tests set.
type clock struct{ at time.Time }

func newClock() *clock { return &clock{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) now() time.Time { return c.at }

func wantExceeded(t *testing.T, err error, r quota.Resource, scope string) *quota.Exceeded {
	t.Helper()
	var e *quota.Exceeded
	if !errors.As(err, &e) || e.Resource != r || string(e.Scope) != scope {
		t.Fatalf("error %v, want the limit on %s of a %s", err, r, scope)
	}
	if !strings.Contains(e.Error(), scope) {
		t.Errorf("the text does not name the scope: %s", e)
	}
	return e
}

func wantTake(t *testing.T, q *quota.Quota, w quota.Account, n quota.Need) *quota.Reservation {
	t.Helper()
	g, err := q.Take(w, n)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestTurns(t *testing.T) {
	q := quota.New(quota.Options{User: quota.Limits{Turns: 2}, Tenant: quota.Limits{Turns: 3}})
	turn := func(id string) quota.Need { return quota.Need{Turn: id, Conversation: "c"} }
	wantTake(t, q, ann, turn("1")).Commit()
	second := wantTake(t, q, ann, turn("2"))
	_, err := q.Take(ann, turn("3"))
	wantExceeded(t, err, quota.Turns, string(quota.User))
	second.Cancel()
	second.Cancel()
	second.Commit()
	wantTake(t, q, ann, turn("2")).Commit()
	wantTake(t, q, bob, turn("4")).Commit()
	_, err = q.Take(bob, turn("5"))
	wantExceeded(t, err, quota.Turns, string(quota.Tenant))
	wantTake(t, q, eve, turn("6")).Commit() // another tenant's
	wantTake(t, q, quota.Account{Tenant: "t"}, turn("7")).Commit()
	q.End("7") // the operator's never counted
	q.End("1")
	q.End("1")
	wantTake(t, q, bob, turn("5")).Commit()
	_, err = q.Take(ann, turn("8"))
	wantExceeded(t, err, quota.Turns, string(quota.Tenant))

	// Begin exceeds the limit, and the next turn has to wait until usage is below it again.
	q.Begin(ann, "9", "c")
	q.Begin(ann, "9", "c")
	q.End("5")
	_, err = q.Take(bob, turn("8"))
	wantExceeded(t, err, quota.Turns, string(quota.Tenant))

	// Sync replaces the count by the state of the log.
	q.Sync("c", map[string]quota.Account{"4": bob, "10": bob, "11": {Tenant: "t"}})
	wantTake(t, q, ann, turn("12")).Commit()
	_, err = q.Take(bob, turn("13"))
	wantExceeded(t, err, quota.Turns, string(quota.User))
	q.Sync("c", nil)
	q.Sync("c", nil)
	for i := range 2 {
		wantTake(t, q, bob, turn(fmt.Sprint("again", i))).Commit()
	}
}

func TestMessages(t *testing.T) {
	c := newClock()
	q := quota.New(quota.Options{User: quota.Limits{Messages: 3}, Tenant: quota.Limits{Messages: 4}, Clock: c.now})
	say := quota.Need{Message: true}
	for range 3 {
		wantTake(t, q, ann, say).Commit()
	}
	_, err := q.Take(ann, say)
	if e := wantExceeded(t, err, quota.Messages, string(quota.User)); e.Wait != 20*time.Second {
		t.Errorf("wait %v, want 20s", e.Wait)
	}
	g := wantTake(t, q, bob, say)
	_, err = q.Take(bob, say)
	if e := wantExceeded(t, err, quota.Messages, string(quota.Tenant)); e.Wait != 15*time.Second {
		t.Errorf("wait %v, want 15s", e.Wait)
	}
	g.Cancel()
	// A message refused by the tenant's limit doesn't use up the user's: bob still has three of his own.
	for i := range 3 {
		if i > 0 {
			c.at = c.at.Add(15 * time.Second)
		}
		wantTake(t, q, bob, say).Commit()
	}
	c.at = c.at.Add(10 * time.Minute) // accounts are forgotten meanwhile
	for range 3 {
		wantTake(t, q, ann, say).Commit()
	}
	_, err = q.Take(ann, say)
	wantExceeded(t, err, quota.Messages, string(quota.User))
}

func TestBytes(t *testing.T) {
	stored := map[quota.Account]int64{{Tenant: "t"}: 5000}
	q := quota.New(quota.Options{
		User: quota.Limits{Bytes: 100}, Tenant: quota.Limits{Bytes: 150},
		StoredBytes: func(tenant, owner string) (of, all int64) {
			for w, n := range stored {
				if w.Tenant == tenant {
					all += n
				}
			}
			return stored[quota.Account{Tenant: tenant, Subject: owner}], all
		},
	})
	of := func(w quota.Account, n int64) quota.Need { return quota.Need{Bytes: n, Owner: w} }
	g := wantTake(t, q, ann, of(ann, 60))
	_, err := q.Take(ann, of(ann, 41))
	wantExceeded(t, err, quota.Bytes, string(quota.User))
	wantTake(t, q, ann, of(ann, 40)).Cancel()
	stored[ann] = 60
	g.Commit()
	_, err = q.Take(bob, of(ann, 41)) // bytes count for the owner, not for the sender
	if e := wantExceeded(t, err, quota.Bytes, string(quota.User)); e.StoredBytes != 60 {
		t.Errorf("StoredBytes is %d, want 60", e.StoredBytes)
	}
	_, err = q.Take(bob, of(bob, 91)) // what the operator stores does not count
	wantExceeded(t, err, quota.Bytes, string(quota.Tenant))
	wantTake(t, q, bob, of(bob, 90)).Cancel()
	wantTake(t, q, bob, of(quota.Account{}, 1<<40)).Commit()
	wantTake(t, q, quota.Account{}, of(ann, 1<<40)).Commit()
	wantTake(t, q, bob, of(bob, 90)).Cancel()
	stored[ann] = 1000 // an answer was long
	_, err = q.Take(ann, of(ann, 1))
	wantExceeded(t, err, quota.Bytes, string(quota.User))
	wantTake(t, q, ann, quota.Need{Turn: "1"}).Commit() // a request without bytes is still granted
}

func TestViewers(t *testing.T) {
	q := quota.New(quota.Options{User: quota.Limits{Viewers: 1}, Tenant: quota.Limits{Viewers: 2}})
	view := func(w quota.Account) func() {
		t.Helper()
		leave, err := q.View(w)
		if err != nil {
			t.Fatal(err)
		}
		return leave
	}
	leave := view(ann)
	_, err := q.View(ann)
	wantExceeded(t, err, quota.Viewers, string(quota.User))
	view(bob)
	_, err = q.View(quota.Account{Tenant: "t", Subject: "carl"})
	wantExceeded(t, err, quota.Viewers, string(quota.Tenant))
	view(quota.Account{})
	view(quota.Account{})
	leave()
	leave()
	view(ann)
	_, err = q.View(ann)
	wantExceeded(t, err, quota.Viewers, string(quota.User))
}

// Of many concurrent requests exactly as many are granted as the limit allows.
func TestExactly(t *testing.T) {
	const asking = 200
	q := quota.New(quota.Options{User: quota.Limits{Turns: 7, Messages: 9, Viewers: 5, Bytes: 1100}, Tenant: quota.Limits{Turns: 11, Messages: 14, Viewers: 8, Bytes: 1700}, Clock: newClock().now})
	count := func(ask func(w quota.Account, i int) error) (mine, all int64) {
		var tasks sync.WaitGroup
		var granted [2]atomic.Int64
		for i := range 2 * asking {
			tasks.Go(func() {
				if ask([]quota.Account{ann, bob}[i%2], i) == nil {
					granted[i%2].Add(1)
				}
			})
		}
		tasks.Wait()
		return max(granted[0].Load(), granted[1].Load()), granted[0].Load() + granted[1].Load()
	}
	for name, c := range map[string]struct {
		ask       func(w quota.Account, i int) error
		mine, all int64
	}{
		"turns": {func(w quota.Account, i int) error {
			_, err := q.Take(w, quota.Need{Turn: fmt.Sprint(i)})
			return err
		}, 7, 11},
		"messages": {func(w quota.Account, _ int) error { _, err := q.Take(w, quota.Need{Message: true}); return err }, 9, 14},
		"bytes":    {func(w quota.Account, _ int) error { _, err := q.Take(w, quota.Need{Bytes: 100, Owner: w}); return err }, 11, 17},
		"viewers":  {func(w quota.Account, _ int) error { _, err := q.View(w); return err }, 5, 8},
	} {
		if mine, all := count(c.ask); all != c.all || mine > c.mine {
			t.Errorf("%s: %d granted, %d of one user; want %d, at most %d", name, all, mine, c.all, c.mine)
		}
	}
}

// After any sequence of reservations, commits, cancellations, ends and syncs, the counts equal those of a naive list.
func TestTurnsRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit, tenants = 3, 4
		q := quota.New(quota.Options{User: quota.Limits{Turns: limit}, Tenant: quota.Limits{Turns: tenants}})
		type open struct {
			id, conversation string
			who              quota.Account
			grant            *quota.Reservation
		}
		var all []open
		n := 0
		who := rapid.SampledFrom([]quota.Account{ann, bob, eve, {}})
		pick := func() int {
			if len(all) == 0 {
				t.Skip("none is open")
			}
			return rapid.IntRange(0, len(all)-1).Draw(t, "which")
		}
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				n++
				o := open{id: fmt.Sprint(n), conversation: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "conversation"), who: who.Draw(t, "who")}
				mine, tenant := 0, 0
				for _, k := range all {
					if k.who == o.who {
						mine++
					}
					if k.who.Tenant == o.who.Tenant && k.who.Subject != "" {
						tenant++
					}
				}
				g, err := q.Take(o.who, quota.Need{Turn: o.id, Conversation: o.conversation})
				if want := o.who.Subject == "" || mine < limit && tenant < tenants; (err == nil) != want {
					t.Fatalf("%v with %d turns, %d in its tenant: %v", o.who, mine, tenant, err)
				}
				if o.grant = g; err == nil {
					all = append(all, o)
				}
			},
			"keep": func(*rapid.T) { all[pick()].grant.Commit() },
			"end": func(*rapid.T) {
				i := pick()
				q.End(all[i].id)
				all = slices.Delete(all, i, i+1)
			},
			"cancel": func(t *rapid.T) {
				i := pick()
				all[i].grant.Cancel() // of one that was kept it changes nothing
				q.End(all[i].id)
				all = slices.Delete(all, i, i+1)
			},
			"sync": func(t *rapid.T) {
				conversation := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "conversation")
				unfinished := map[string]quota.Account{}
				all = slices.DeleteFunc(all, func(o open) bool {
					if o.conversation != conversation {
						return false
					}
					gone := rapid.Bool().Draw(t, "gone")
					if !gone {
						unfinished[o.id] = o.who
					}
					return gone
				})
				q.Sync(conversation, unfinished)
			},
		})
	})
}
