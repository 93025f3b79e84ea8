package gateway

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/store/journal"
)

// An agent may hand its turn on: it takes the request, and brings the stream in later by ingest, perhaps from another
// process. The turn is then a pushed one in all but the name of its agent. That it was handed on lies in the journal
// together with the state of the stream, so that it goes on after a restart.

// tokenPrefix begins the token of a turn: it is <prefix><turn>.<secret>.
const tokenPrefix = "leat-turn."

// issue makes the token by which the agent may bring the turn's stream in. Its digest is written with the turn.
func (w *writer) issue(t *tx, turn string, a Agent) *agent.Ingest {
	if _, ok := a.Agent.(agent.Pusher); !ok {
		return nil
	}
	token := tokenPrefix + turn + "." + rand.Text()
	digest := sha256.Sum256([]byte(token))
	t.set(journalkey.TurnToken(turn), digest[:], 0)
	return &agent.Ingest{URL: w.g.cfg.URL + "/api/turns/" + turn + "/ingest", Token: token}
}

// Producer returns the turn that a token lets its holder bring the stream of, "" where it is the token of none.
func (g *Gateway) Producer(ctx context.Context, token string) (turn string, err error) {
	rest, ok := strings.CutPrefix(token, tokenPrefix)
	if !ok {
		return "", nil
	}
	turn, _, ok = strings.Cut(rest, ".")
	if !ok || len(token) > maxToken {
		return "", nil
	}
	want, err := g.journal.Get(ctx, journalkey.TurnToken(turn))
	if errors.Is(err, journal.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", JournalError("look up token of turn", err)
	}
	digest := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(digest[:], want) != 1 {
		return "", nil
	}
	return turn, nil
}

// maxToken bounds a token that is looked up, in bytes.
const maxToken = 256

// handsOn returns to what the agent hands its turn on, nil where it doesn't.
func handsOn(a Agent, err error) *agent.Pushed {
	var to *agent.Pushed
	if _, ok := a.Agent.(agent.Pusher); ok && errors.As(err, &to) {
		return to
	}
	return nil
}

// handOn makes the run a pushed one, durably, and runs it until its stream ends.
func (r *run) handOn(ctx context.Context, to *agent.Pushed) error {
	d, err := r.g.cfg.Dialects.Lookup(to.Dialect)
	if err != nil {
		return err
	}
	st := pushState{Dialect: d.Name}
	if err := r.link.SetPushed(ctx, r.turn, st.appendJSON(nil)); err != nil {
		return fmt.Errorf("hand turn on: %w", err)
	}
	r.isPushed.Store(true)
	return r.runPushed(ctx, st)
}

// handed reports whether a turn was handed on. Its mark lives as long as its state.
func (g *Gateway) handed(ctx context.Context, turn string) (bool, error) {
	_, err := g.journal.Get(ctx, journalkey.TurnPushed(turn))
	if errors.Is(err, journal.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// mayPush reports whether a producer may bring the turn's stream in: it is a pushed one, was handed on, or is with an agent
// that may do so and whose producer came first.
func (g *Gateway) mayPush(ctx context.Context, conversation, turn, name string) (bool, error) {
	if name == PushAgent {
		return true, nil
	}
	p, err := g.principal(ctx, turn)
	if errors.Is(err, journal.ErrNotFound) { // it has ended: whoever owns the conversation stands in
		var s journal.Summary
		s, err = g.journal.Conversation(ctx, conversation)
		p = agent.Principal{Tenant: s.Tenant, Subject: s.Owner}
	}
	if err != nil {
		return false, JournalError("look up principal of turn", err)
	}
	if a, ok := g.agent(name, p); ok {
		if _, ok := a.Agent.(agent.Pusher); ok {
			return true, nil
		}
	}
	return g.handed(ctx, turn) // its agent may have been taken out of the configuration since
}
