package console

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
)

// runner executes effects, each in a goroutine. Messages are sent one after another, in the order in which they were
// typed; everything else runs at once, so that a stop doesn't wait for a message. All methods but run and those that
// it calls belong to the loop of the program.
type runner struct {
	ctx    context.Context
	client *leat.Client
	getenv func(string) string
	// conversation and isUntitled are those of the next effect. A goroutine gets copies, so a new conversation
	// doesn't change the target of a message that was typed before it.
	conversation string
	isUntitled   bool

	// queue has the messages behind the one that is being sent.
	queue     []effect
	isSending bool
	// unanswered counts the started requests that change something, for whose results leaving waits.
	unanswered int
	// results is unbuffered. A result that isn't received is dropped when ctx ends.
	results    chan result
	goroutines sync.WaitGroup
}

// begin starts an effect. The first message takes the title with it, even if it fails: then the conversation stays
// without one.
func (r *runner) begin(e effect) {
	if isMessage(e) {
		if r.isSending {
			r.queue = append(r.queue, e)
			return
		}
		r.isSending = true
	}
	if isChange(e) {
		r.unanswered++
	}
	conversation, isUntitled := r.conversation, r.isUntitled
	if _, ok := e.(send); ok {
		r.isUntitled = false
	}
	r.goroutines.Go(func() {
		result := r.run(e, conversation, isUntitled)
		result.effect = e
		select {
		case r.results <- result:
		case <-r.ctx.Done():
		}
	})
}

// isMessage reports whether an effect must wait for earlier messages.
func isMessage(e effect) bool {
	switch e.(type) {
	case send, resend, startNew:
		return true
	}
	return false
}

// isChange reports whether an effect changes something on the gateway.
func isChange(e effect) bool {
	switch e.(type) {
	case answer, stop:
		return true
	}
	return isMessage(e)
}

// complete takes a result, and sends the next message. It must be called once for each result that was received from
// results.
func (r *runner) complete(result result) {
	if isChange(result.effect) {
		r.unanswered--
	}
	if !isMessage(result.effect) {
		return
	}
	if _, ok := result.effect.(startNew); ok && result.err == nil {
		r.conversation, r.isUntitled = result.text, true
	}
	r.isSending = false
	if len(r.queue) > 0 {
		next := r.queue[0]
		r.queue = r.queue[1:]
		r.begin(next)
	}
}

// finish waits until what the user typed before leaving is carried out: messages, answers and stops. It waits for at
// most a limit. Queued messages are sent during that time too.
func (r *runner) finish(limit time.Duration) {
	timeout := time.After(limit)
	for r.unanswered > 0 {
		select {
		case result := <-r.results:
			r.complete(result)
		case <-timeout:
			return
		}
	}
}

// run executes one effect. It doesn't touch the fields that the loop changes. The error of a message is that of the
// message alone: a title that can't be set is a note.
func (r *runner) run(e effect, conversation string, isUntitled bool) result {
	switch e := e.(type) {
	case send:
		if err := r.send(conversation, leat.Message{ID: e.id, Text: e.text}, e.agent); err != nil || !isUntitled {
			return result{err: describe("send", err)}
		}
		t := Title(e.text)
		if _, err := r.client.Do(r.ctx, conversation, leat.Command{Type: "update", Title: &t}); err != nil {
			return result{note: describe("title", err).Error()} // the message itself is sent
		}
		return result{}
	case resend:
		_, err := r.client.Do(r.ctx, conversation, leat.Command{Type: "truncate", After: e.after, KeepFiles: true})
		if err == nil {
			err = r.send(conversation, e.message, e.agent)
		}
		return result{err: describe("retry", err)}
	case answer:
		_, err := r.client.Answer(r.ctx, conversation, e.turn, e.request, e.decision, e.reason)
		return result{err: describe("answer", err)}
	case stop:
		_, err := r.client.Stop(r.ctx, conversation, e.turn)
		return result{err: describe("stop", err)}
	case startNew:
		c, err := r.client.Create(r.ctx, leat.CreateOptions{Agent: e.agent})
		return result{text: c.ID, err: describe("new conversation", err)}
	case listAgents:
		return r.agents(e.choice)
	case open:
		return r.open(conversation)
	}
	return result{}
}

// send sends a message. The source cli shows other clients where the message was written.
func (r *runner) send(conversation string, m leat.Message, agent string) error {
	m.Source = "cli"
	_, err := r.client.Do(r.ctx, conversation, leat.Command{Type: "send", Message: &m, Agent: agent})
	return err
}

// describe returns an error with what failed, and only the message if the gateway has sent one. An error of the
// gateway is written for people and complete, so its code and status are left out. A nil error stays nil.
func describe(operation string, err error) error {
	if e, ok := errors.AsType[*leat.Error](err); ok && e.Message != "" {
		return fmt.Errorf("%s: %s", operation, e.Message)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	return nil
}

// agents lists the agents, or finds the one with a name or a number. A name wins over a number, since an agent may be
// called "2". An unknown choice is an empty text and not an error.
func (r *runner) agents(choice string) result {
	agents, err := r.client.Agents(r.ctx)
	result := result{err: describe("agents", err)}
	for i, a := range agents {
		result.agents = append(result.agents, a.Name)
		if a.Name == choice || strconv.Itoa(i+1) == choice && result.text == "" {
			result.text = a.Name
		}
	}
	return result
}

// open opens the page of the conversation in the browser, if there is one. The address is always part of the result.
// Without a display, as over SSH, the user opens the address elsewhere.
func (r *runner) open(conversation string) result {
	address := pageURL(r.client.URL, conversation)
	name, args := "xdg-open", []string{address}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	default:
		if r.getenv("DISPLAY") == "" && r.getenv("WAYLAND_DISPLAY") == "" {
			return result{text: address}
		}
	}
	if _, err := exec.LookPath(name); err != nil {
		return result{text: address}
	}
	if err := exec.CommandContext(r.ctx, name, args...).Run(); err != nil {
		return result{text: address, err: fmt.Errorf("open the browser: %w", err)}
	}
	return result{text: address}
}

// pageURL returns the address of a conversation on the gateway's page. The page has its routes in the fragment. The
// address contains no token, so the browser has to be logged in.
func pageURL(base, conversation string) string {
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	return strings.TrimRight(base, "/") + "/#/c/" + url.PathEscape(conversation)
}
