package leat_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/eliza"
	"github.com/leat-dev/leat/internal/server/native"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// issuer makes tokens of users, and ends them when the test says so.
type issuer struct {
	mu      sync.Mutex
	life    time.Duration
	made    map[string]server.Identity
	revoked bool
}

func (i *issuer) token(subject string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	t := fmt.Sprintf("%s-%d", subject, len(i.made))
	i.made[t] = server.Identity{Principal: gateway.Principal{Subject: subject}, Expires: time.Now().Add(i.life)}
	return t
}

func (i *issuer) Verify(_ context.Context, token string) (server.Identity, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	id, ok := i.made[token]
	switch {
	case !ok || i.revoked:
		return id, errors.New("not mine")
	case time.Now().After(id.Expires):
		return server.Identity{}, server.ErrExpired
	}
	return id, nil
}

// newUsers is a gateway whose users have tokens of the issuer's.
func newUsers(t *testing.T, life time.Duration, a agent.Agent) (*issuer, *leat.Client) {
	t.Helper()
	gw, err := gateway.New(gateway.Config{
		Journal: memory.New(), Agents: gateway.Agents{"a": {Agent: a}}, DefaultAgent: "a", Settings: gateway.Settings{Drain: time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	i := &issuer{life: life, made: map[string]server.Identity{}}
	srv := server.New(server.Options{Users: i})
	native.Register(srv, gw)
	eliza.Register(srv, gw, eliza.Options{})
	ts := httptest.NewServer(srv)
	transport := &http.Transport{}
	t.Cleanup(func() {
		srv.Close()
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		transport.CloseIdleConnections()
		ts.Close()
	})
	return i, &leat.Client{URL: ts.URL, HTTP: &http.Client{Transport: transport}}
}

// A reader whose tokens expire repeatedly receives everything.
func TestTokenSource(t *testing.T) {
	words := make(chan string)
	i, c := newUsers(t, time.Second, story{words})
	asked := 0
	token, until := "", time.Time{}
	c.TokenSource = func() (string, error) {
		i.mu.Lock()
		defer i.mu.Unlock()
		if asked++; time.Now().After(until) {
			i.mu.Unlock()
			token = i.token("alice")
			i.mu.Lock()
			until = i.made[token].Expires
		}
		return token, nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	conv, err := c.Create(ctx, leat.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ack, err := c.Send(ctx, conv.ID, "tell me")
	if err != nil {
		t.Fatal(err)
	}
	connections, said := 0, 0
	want := ""
	err = c.Follow(ctx, conv.ID, func(u leat.Update) error {
		if u.Connected {
			if connections++; connections > 3 {
				if said < 4 {
					close(words)
				}
				said = 4
			} else {
				want += fmt.Sprint(connections)
				words <- fmt.Sprint(connections) // one word a connection
			}
			return nil
		}
		if turn := u.Transcript.Turn(ack.Turn); turn != nil && !turn.Unfinished() {
			if got := u.Transcript.Visible(ack.Turn); got != want || want != "123" {
				t.Errorf("read %q, want %q", got, want)
			}
			return leat.ErrStop
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	// A token that is refused is asked for once more, and no more than that.
	i.mu.Lock()
	i.revoked = true
	asked = 0
	i.mu.Unlock()
	var refused *leat.Error
	if _, err := c.Conversations(ctx); !errors.As(err, &refused) || refused.Status != http.StatusUnauthorized || asked != 2 {
		t.Errorf("refused: %v, asked %d times", err, asked)
	}
	asked = 0
	if err := c.Follow(ctx, conv.ID, func(leat.Update) error { return nil }); !errors.As(err, &refused) || asked != 2 {
		t.Errorf("refused: %v, asked %d times", err, asked)
	}
	c.TokenSource = func() (string, error) { return "", errors.New("the login is gone") }
	short, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	if _, err := c.Conversation(short, conv.ID); !errors.Is(err, leat.ErrToken) || !strings.Contains(err.Error(), "the login is gone") {
		t.Errorf("without a token: %v", err)
	}
}

// A conversation is shared, listed for the other user, and revoked.
func TestShare(t *testing.T) {
	i, c := newUsers(t, time.Hour, asker{})
	as := func(subject string) *leat.Client {
		u := *c
		u.Token = i.token(subject)
		return &u
	}
	alice, bob := as("alice"), as("bob")
	conv, err := alice.Create(t.Context(), leat.CreateOptions{Title: "plans"})
	if err != nil {
		t.Fatal(err)
	}
	wantBob := func(access string) {
		t.Helper()
		all, err := bob.Conversations(t.Context())
		if err != nil || (access == "") != (len(all) == 0) || len(all) > 1 {
			t.Fatalf("bob's list: %+v, %v", all, err)
		}
		if access != "" && (all[0].Access != access || all[0].Owner != "alice" || len(all[0].Grants) > 0) {
			t.Errorf("bob sees %+v, want %s", all[0], access)
		}
	}
	wantBob("")
	for _, access := range []string{leat.AccessRead, leat.AccessWrite} {
		if err := alice.Share(t.Context(), conv.ID, leat.Grant{Subject: "bob", Access: access}); err != nil {
			t.Fatal(err)
		}
		wantBob(access)
	}
	mine, err := alice.Conversation(t.Context(), conv.ID)
	if err != nil || len(mine.Grants) != 1 || mine.Grants[0] != (leat.Grant{Subject: "bob", Access: "write"}) || mine.Owner != "" {
		t.Errorf("alice sees %+v, %v", mine, err)
	}
	var refused *leat.Error
	if err := bob.Unshare(t.Context(), conv.ID, "bob"); !errors.As(err, &refused) || refused.Status != http.StatusForbidden {
		t.Errorf("bob takes it back: %v", err)
	}
	if err := alice.Unshare(t.Context(), conv.ID, "bob"); err != nil {
		t.Fatal(err)
	}
	wantBob("")
}
