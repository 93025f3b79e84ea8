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
	// Of its turns, a stream truncates its conversation after every truncateEvery, and begins another one after every deleteEvery.
	truncateEvery = 4
	deleteEvery   = 24
	// In one of brokenTurns the agent breaks off.
	brokenTurns = 12
	minWords    = 20
	maxWords    = 160
	// retryPause is between two tries of what failed because the gateway was away.
	retryPause = 100 * time.Millisecond
)

// stream is one user with one conversation at a time, who asks, reads the answer, and asks again.
type stream struct {
	run    *run
	name   string
	rng    *rand.Rand
	client *leat.Client
	cut    *cutting
	turns  int // sent
	made   int // conversations

	mu    sync.Mutex
	turn  string // that is watched; empty: its id is not known yet
	watch *watch // nil: none
	over  chan struct{}
	ends  map[string]int64 // turn: seq of its end
	// unnamed holds what was seen of the turns while the id of the one that is watched was not known.
	unnamed map[string]sight
}

// sight is a turn as a reader saw it.
type sight struct {
	turn transcript.Turn
	text string
}

func newStream(r *run, n int) *stream {
	name := fmt.Sprintf("stream-%d", n)
	s := &stream{run: r, name: name, rng: rand.New(rand.NewPCG(r.opt.Seed, uint64(n)))}
	s.cut = &cutting{base: r.transport, rng: rand.New(rand.NewPCG(r.opt.Seed, 1<<32|uint64(n)))}
	s.client = &leat.Client{URL: r.program.url(), HTTP: &http.Client{Transport: s.cut}}
	return s
}

// talk repeats conversations until ctx ends. An error is a fault of the gateway.
func (s *stream) talk(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := s.conversation(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// conversation makes a conversation, talks in it, and deletes it.
func (s *stream) conversation(ctx context.Context) error {
	s.made++
	id := fmt.Sprintf("%s-%d", s.name, s.made)
	err := s.insist(ctx, func() error {
		_, err := s.client.Create(ctx, leat.CreateOptions{ID: id, Key: id})
		return err
	})
	if err != nil {
		return fmt.Errorf("create %s: %w", id, err)
	}
	s.mu.Lock()
	s.ends = map[string]int64{}
	s.mu.Unlock()
	reading, stop := context.WithCancelCause(ctx)
	faults := make(chan error, 1)
	go func() {
		err := s.client.Follow(reading, id, s.read)
		if reading.Err() == nil {
			faults <- fmt.Errorf("%s: the reader gave up: %w", id, err)
		}
		close(faults)
	}()
	err = s.ask(ctx, id, faults)
	stop(nil)
	for fault := range faults {
		err = errors.Join(err, fault)
	}
	if err != nil {
		return err
	}
	err = s.insist(ctx, func() error { return s.client.Delete(ctx, id) })
	if gone := (*leat.Error)(nil); errors.As(err, &gone) && gone.Status == http.StatusNotFound {
		err = nil // the answer to a first try was lost
	}
	return err
}

// ask asks until the conversation is to be deleted.
func (s *stream) ask(ctx context.Context, id string, faults <-chan error) error {
	for n := 1; n <= deleteEvery && ctx.Err() == nil; n++ {
		if err := s.one(ctx, id, faults); err != nil {
			return err
		}
		if n%truncateEvery != 0 {
			continue
		}
		err := s.insist(ctx, func() error {
			_, err := s.client.Do(ctx, id, leat.Command{Type: "truncate", Key: fmt.Sprintf("truncate-%d", n)})
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: truncate: %w", id, err)
		}
	}
	return nil
}

// one asks once and waits for the end of the answer.
func (s *stream) one(ctx context.Context, id string, faults <-chan error) error {
	s.turns++
	script := script{seed: s.rng.Uint64(), words: minWords + s.rng.IntN(maxWords-minWords)}
	if s.rng.IntN(brokenTurns) == 0 {
		script.cut = 1 + s.rng.IntN(script.words)
	}
	over := make(chan struct{})
	s.mu.Lock()
	s.turn, s.watch, s.over, s.unnamed = "", newWatch(script, s.run.restarts.Load), over, map[string]sight{}
	s.mu.Unlock()
	var ack leat.Ack
	err := s.insist(ctx, func() (err error) {
		ack, err = s.client.Do(ctx, id, leat.Command{Type: "send", Key: fmt.Sprintf("send-%d", s.turns), Message: &leat.Message{Text: script.prompt()}})
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: send: %w", id, err)
	}
	if err := s.named(ack.Turn); err != nil {
		return err
	}
	late := time.NewTimer(turnLimit + retryPause)
	defer late.Stop()
	select {
	case <-over:
		s.run.ended.Add(1)
		return nil
	case err := <-faults:
		return err
	case <-late.C:
		return fmt.Errorf("%s: turn %s has not ended after %v", id, ack.Turn, turnLimit)
	case <-ctx.Done():
		return nil
	}
}

// read takes what the reader of the conversation sees.
func (s *stream) read(u leat.Update) error {
	if u.Connected {
		return nil
	}
	s.cut.progress()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range u.Events {
		e := &u.Events[i]
		if e.Type != event.TurnEnd {
			continue
		}
		if first, known := s.ends[e.Turn]; known && first != e.Seq {
			return fmt.Errorf("turn %s has two ends, at %d and at %d", e.Turn, first, e.Seq)
		}
		s.ends[e.Turn] = e.Seq
	}
	switch {
	case s.watch == nil:
		return nil
	case s.turn == "":
		for _, t := range u.Transcript.Turns {
			s.unnamed[t.ID] = sight{*t, u.Transcript.Visible(t.ID)}
		}
		return nil
	}
	return s.look(u.Transcript.Turn(s.turn), u.Transcript.Visible(s.turn))
}

// named takes the id of the turn that is watched. The reader may have seen all of it by now.
func (s *stream) named(turn string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn = turn
	if seen, ok := s.unnamed[turn]; ok {
		return s.look(&seen.turn, seen.text)
	}
	return nil
}

// look checks what is seen of the turn. s.mu is held.
func (s *stream) look(turn *transcript.Turn, text string) error {
	over, err := s.watch.look(turn, text, time.Now())
	if err != nil {
		return fmt.Errorf("turn %s (%s): %w", s.turn, s.watch.script.prompt(), err)
	}
	if over {
		s.watch = nil
		close(s.over)
	}
	return nil
}

// insist repeats what fails because the gateway is away.
func (s *stream) insist(ctx context.Context, do func() error) error {
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
