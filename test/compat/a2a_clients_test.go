package compat

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
)

// a2aMessage is a message of a user: a text, or data if Data is set. The ids may be empty.
type a2aMessage struct {
	ID, Task, Context string
	Text              string
	Data              map[string]any
	File              []byte
	HasPush           bool // asks for push notifications
}

// a2aEvent is an event of a stream, or a whole task. It has one of the three fields.
type a2aEvent struct {
	task     *a2aTask
	status   *a2aStatus
	artifact *a2aArtifact
}

type a2aStatus struct {
	state, note string
	isFinal     bool // known in 0.3 only
}

type a2aArtifact struct {
	id, text         string
	kinds            []string // of its parts
	isAppend, isLast bool
}

// a2aClient is an official client for Go, for one version of the protocol.
type a2aClient interface {
	card() string
	send(ctx context.Context, m a2aMessage) (*a2aTask, error)
	stream(ctx context.Context, m a2aMessage) iter.Seq2[a2aEvent, error]
	subscribe(ctx context.Context, id string) iter.Seq2[a2aEvent, error]
	get(ctx context.Context, id string) (*a2aTask, error)
	cancel(ctx context.Context, id string) (*a2aTask, error)
	errors() a2aErrors
}

// a2aErrors are the errors that a program can tell apart.
type a2aErrors struct{ notFound, notCancelable, unsupported, noPush, invalid error }

// a2aSession names the credentials in the stores of the clients, which attach them by the scheme of the card.
const a2aSession = "one"

// a2aMaker makes a client of an agent. It reads the agent's card first.
type a2aMaker func(ctx context.Context, base, agent, token string, web *http.Client) (a2aClient, error)

// a2aTask is what a program has of a task: its artifacts, with the updates applied, and its last status.
type a2aTask struct {
	a2aStatus
	id, context string
	artifacts   map[string]*a2aArtifact
	history     []string
}

// text returns the text of the answer.
func (t *a2aTask) text() string {
	if a := t.artifacts["answer"]; a != nil {
		return a.text
	}
	return ""
}

// isOver reports whether a state ends a stream.
func isOver(state string) bool { return state != "submitted" && state != "working" }

// errEnough ends the reading of a stream by the program.
var errEnough = errors.New("enough")

// readTask reads a stream to its end, which must be one status that ends it. on is called after each event; an error of it ends the reading.
// It returns what the program has, also with an error: nil if not even the task has arrived.
func readTask(events iter.Seq2[a2aEvent, error], on func(*a2aTask) error) (t *a2aTask, err error) {
	hasEnded := false
	for e, err := range events {
		switch {
		case err != nil:
			return t, err
		case hasEnded:
			return t, fmt.Errorf("%+v follows the last status", e)
		case (e.task != nil) != (t == nil):
			return t, fmt.Errorf("%+v: the task comes first, and once", e)
		case e.task != nil:
			t = e.task
		case e.status != nil:
			t.a2aStatus = *e.status
			hasEnded = isOver(t.state)
		default:
			if err := t.update(e.artifact); err != nil {
				return t, err
			}
		}
		if on != nil {
			if err := on(t); err != nil {
				return t, err
			}
		}
	}
	if !hasEnded {
		return t, errors.New("the stream has no last status")
	}
	return t, nil
}

// update applies an update of an artifact.
func (t *a2aTask) update(u *a2aArtifact) error {
	known := t.artifacts[u.id]
	switch {
	case known != nil && known.isLast:
		return fmt.Errorf("%+v follows the last chunk of the artifact", u)
	case !u.isAppend:
		t.artifacts[u.id] = u
	case known == nil:
		return fmt.Errorf("%+v is appended to nothing", u)
	default:
		known.text, known.isLast = known.text+u.text, u.isLast
	}
	return nil
}
