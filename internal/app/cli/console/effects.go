package console

import (
	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
)

// An effect is something that a [model] wants done. Each of them but quit and save ends with a result, which the model gets with
// [model.take].
type effect interface{ isEffect() }

type (
	// send sends a message with an id, by which it is recognized in the conversation.
	send struct{ id, text, agent string }
	// answer answers a request. Either decision or reason is empty.
	answer struct {
		turn, request, reason string
		decision              event.Decision
	}
	// stop stops a turn, and quit leaves without stopping one.
	stop struct{ turn string }
	// startNew begins a new conversation.
	startNew struct{ agent string }
	// listAgents lists the agents, or finds the one with a name or a number.
	listAgents struct{ choice string }
	// resend removes the messages after a message, and sends one of them again. text is what the user sees of it.
	resend struct {
		after, text, agent string
		message            leat.Message
	}
	// open opens the page of the conversation in the browser.
	open struct{}
	quit struct{}
	// save adds a message to the file of the history.
	save struct{ text string }
)

func (send) isEffect()       {}
func (answer) isEffect()     {}
func (stop) isEffect()       {}
func (startNew) isEffect()   {}
func (listAgents) isEffect() {}
func (resend) isEffect()     {}
func (open) isEffect()       {}
func (quit) isEffect()       {}
func (save) isEffect()       {}

// result is the outcome of an effect.
type result struct {
	effect effect
	// err is why the effect failed. It is nil for a partial failure, which note describes.
	err error
	// note is what failed although the effect itself succeeded. It is empty if nothing did.
	note   string
	agents []string // of listAgents
	// text is the id of the new conversation, the name of the chosen agent, or the address of the page.
	text string
}
