package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

const (
	// A stream truncates its conversation after every truncateEvery turns, and deletes it after deleteEvery turns.
	truncateEvery = 4
	deleteEvery   = 24
	// In one of brokenTurns turns the agent breaks off.
	brokenTurns = 12
	minWords    = 20
	maxWords    = 160
	// retryPause is the pause before a call that failed during a restart is retried.
	retryPause = 100 * time.Millisecond
)

// stream is a user with one conversation at a time. It sends a message, waits for the end of the answer, and repeats.
type stream struct {
	run           *run
	name          string
	rng           *rand.Rand
	client        *leat.Client
	transport     *cutting
	turns         int // messages sent
	conversations int // conversations created

	mu    sync.Mutex
	turn  string           // id of the current turn, empty until the response to the message arrives
	check *turnCheck       // of the current turn, nil after its end
	ended chan struct{}    // closed at the end of the current turn
	ends  map[string]int64 // turn id: seq of its end
	// early has the turns that the reader has received while the current turn's id was unknown.
	early map[string]turnState
}

// turnState is a turn as the reader has received it.
type turnState struct {
	turn transcript.Turn
	text string
}

func newStream(r *run, n int) *stream {
	name := fmt.Sprintf("stream-%d", n)
	s := &stream{run: r, name: name, rng: rand.New(rand.NewPCG(r.opt.Seed, uint64(n)))}
	s.transport = &cutting{base: r.transport, rng: rand.New(rand.NewPCG(r.opt.Seed, 1<<32|uint64(n)))}
	s.client = &leat.Client{URL: r.program.url(), HTTP: &http.Client{Transport: s.transport}}
	return s
}

// runConversations repeats conversations until ctx ends. An error is a fault of the gateway.
func (s *stream) runConversations(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := s.conversation(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// conversation creates a conversation, runs its turns while a reader follows it, and deletes it.
func (s *stream) conversation(ctx context.Context) error {
	s.conversations++
	id := fmt.Sprintf("%s-%d", s.name, s.conversations)
	err := s.retry(ctx, func() error {
		_, err := s.client.Create(ctx, leat.CreateOptions{ID: id, Key: id})
		return err
	})
	if err != nil {
		return fmt.Errorf("create %s: %w", id, err)
	}
	s.mu.Lock()
	s.ends = map[string]int64{}
	s.mu.Unlock()
	followCtx, stop := context.WithCancelCause(ctx)
	faults := make(chan error, 1)
	go func() {
		err := s.client.Follow(followCtx, id, s.receive)
		if followCtx.Err() == nil {
			faults <- fmt.Errorf("%s: the reader failed: %w", id, err)
		}
		close(faults)
	}()
	err = s.runTurns(ctx, id, faults)
	stop(nil)
	for fault := range faults {
		err = errors.Join(err, fault)
	}
	if err != nil {
		return err
	}
	err = s.retry(ctx, func() error { return s.client.Delete(ctx, id) })
	if notFound := (*leat.Error)(nil); errors.As(err, &notFound) && notFound.Status == http.StatusNotFound {
		err = nil // the first attempt succeeded, but its response was lost
	}
	return err
}

// runTurns runs deleteEvery turns, with truncates in between.
func (s *stream) runTurns(ctx context.Context, id string, faults <-chan error) error {
	for n := 1; n <= deleteEvery && ctx.Err() == nil; n++ {
		if err := s.runTurn(ctx, id, faults); err != nil {
			return err
		}
		if n%truncateEvery != 0 {
			continue
		}
		err := s.retry(ctx, func() error {
			_, err := s.client.Do(ctx, id, leat.Command{Type: "truncate", Key: fmt.Sprintf("truncate-%d", n)})
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: truncate: %w", id, err)
		}
	}
	return nil
}

// runTurn sends a message and waits for the end of the answer.
func (s *stream) runTurn(ctx context.Context, id string, faults <-chan error) error {
	s.turns++
	script := script{rngSeed: s.rng.Uint64(), words: minWords + s.rng.IntN(maxWords-minWords)}
	if s.rng.IntN(brokenTurns) == 0 {
		script.breakAfter = 1 + s.rng.IntN(script.words)
	}
	ended := make(chan struct{})
	s.mu.Lock()
	s.turn, s.check, s.ended, s.early = "", newTurnCheck(script, s.run.restarts.Load), ended, map[string]turnState{}
	s.mu.Unlock()
	var ack leat.Ack
	err := s.retry(ctx, func() (err error) {
		ack, err = s.client.Do(ctx, id, leat.Command{Type: "send", Key: fmt.Sprintf("send-%d", s.turns), Message: &leat.Message{Text: script.prompt()}})
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: send: %w", id, err)
	}
	if err := s.setTurn(ack.Turn); err != nil {
		return err
	}
	timeout := time.NewTimer(turnLimit + retryPause)
	defer timeout.Stop()
	select {
	case <-ended:
		s.run.turns.Add(1)
		return nil
	case err := <-faults:
		return err
	case <-timeout.C:
		return fmt.Errorf("%s: turn %s has not ended after %v", id, ack.Turn, turnLimit)
	case <-ctx.Done():
		return nil
	}
}

// receive is the callback of the conversation's reader. It checks the current turn, and that no turn ends twice.
func (s *stream) receive(u leat.Update) error {
	if u.Connected {
		return nil
	}
	s.transport.progress()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range u.Events {
		e := &u.Events[i]
		if e.Type != event.TurnEnd {
			continue
		}
		if seq, hasEnd := s.ends[e.Turn]; hasEnd && seq != e.Seq {
			return fmt.Errorf("turn %s has two ends, at seq %d and at %d", e.Turn, seq, e.Seq)
		}
		s.ends[e.Turn] = e.Seq
	}
	switch {
	case s.check == nil:
		return nil
	case s.turn == "":
		for _, t := range u.Transcript.Turns {
			s.early[t.ID] = turnState{*t, u.Transcript.Visible(t.ID)}
		}
		return nil
	}
	return s.update(u.Transcript.Turn(s.turn), u.Transcript.Visible(s.turn))
}

// setTurn sets the id of the current turn. The reader may already have received the whole turn.
func (s *stream) setTurn(turn string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn = turn
	if received, ok := s.early[turn]; ok {
		return s.update(&received.turn, received.text)
	}
	return nil
}

// update checks the current turn. The caller holds s.mu.
func (s *stream) update(turn *transcript.Turn, text string) error {
	hasEnded, err := s.check.update(turn, text, time.Now())
	if err != nil {
		return fmt.Errorf("turn %s (%s): %w", s.turn, s.check.script.prompt(), err)
	}
	if hasEnded {
		s.check = nil
		close(s.ended)
	}
	return nil
}

// retry repeats a call until it succeeds, ctx ends, or the gateway refuses it permanently.
func (s *stream) retry(ctx context.Context, do func() error) error {
	for {
		err := do()
		var refused *leat.Error
		if err == nil || ctx.Err() != nil || errors.As(err, &refused) && !refused.Temporary() {
			return err
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
