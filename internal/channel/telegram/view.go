package telegram

import (
	"time"
	"unicode/utf8"
)

const (
	// draftGap is the time between two drafts, and draftLife the time after which an unchanged draft is sent again: it would
	// disappear after about 30 s.
	draftGap  = 400 * time.Millisecond
	draftLife = 20 * time.Second
	// cardGap is the time between two edits of the card that change more than the elapsed time, and heartbeat that of the others.
	cardGap   = 500 * time.Millisecond
	heartbeat = 5 * time.Second
	// typingLife is a little less than the 5 s for which "typing" is shown.
	typingLife = 4500 * time.Millisecond
	// firstRunes is how long a text must be before a message is created for it, and firstWait how long a shorter one waits.
	firstRunes = 30
	firstWait  = 2 * time.Second
)

// action is a request that changes what is seen of a running turn.
type action int

const (
	noAction action = iota
	sendTyping
	sendDraft
	createText
	editText
	createCard
	editCard
	askQuestion
	closeQuestion
)

// view decides what to show of a running turn, and when. It is pure: the caller passes the time and reports what it did.
type view struct {
	drafts  bool // the text is shown as a draft, and not as a message that is edited
	hasText bool // a message for the text exists
	hasCard bool // a message for the card exists
	asks    bool // a question is to be sent
	closes  bool // the buttons of a question are to be removed

	// What should be seen, and what is.
	text, card         string
	seenText, seenCard string
	since              time.Time // when text became other than seenText

	typingAt, textAt, cardAt time.Time // of the last request of each kind
}

// update sets what should be seen. An empty text leaves the one before, until the next iteration has written something.
func (l *view) update(at time.Time, text, card string) {
	if text != "" {
		if l.text == l.seenText && text != l.text {
			l.since = at
		}
		l.text = text
	}
	l.card = card
}

// next returns the most urgent action and when it is due. free is when the chat allows messages and edits, unblocked when it allows
// drafts and typing.
func (l *view) next(free, unblocked time.Time) (do action, at time.Time) {
	consider := func(a action, due time.Time) {
		if do == noAction || due.Before(at) {
			do, at = a, due
		}
	}
	if l.asks { // first, because the turn waits
		return askQuestion, free
	}
	if l.closes {
		consider(closeQuestion, free)
	}
	switch {
	case l.text == "":
	case l.drafts && l.text != l.seenText:
		consider(sendDraft, latest(l.textAt.Add(draftGap), unblocked))
	case l.drafts:
		consider(sendDraft, latest(l.textAt.Add(draftLife), unblocked))
	case !l.hasText:
		due := l.since
		if utf8.RuneCountInString(l.text) < firstRunes {
			due = due.Add(firstWait)
		}
		consider(createText, latest(due, free))
	case l.text != l.seenText:
		consider(editText, latest(l.textAt, free))
	}
	switch {
	case l.card == "":
	case !l.hasCard:
		consider(createCard, free)
	case l.card != l.seenCard:
		consider(editCard, latest(l.cardAt.Add(cardGap), free))
	default:
		consider(editCard, latest(l.cardAt.Add(heartbeat), free))
	}
	if l.text == "" && l.card == "" {
		consider(sendTyping, latest(l.typingAt.Add(typingLife), unblocked))
	}
	return do, at
}

// record records that an action was carried out, with text and card as they were then. A failed one is recorded too: it is
// repeated with the state that is current then, no earlier than the next regular time.
func (l *view) record(a action, at time.Time, text, card string, ok bool) {
	switch a {
	case sendTyping:
		l.typingAt = at
	case sendDraft, createText, editText:
		l.textAt = at
		if ok {
			l.seenText = text
			l.hasText = l.hasText || a == createText
		}
	case createCard, editCard:
		l.cardAt = at
		if ok {
			l.seenCard = card
			l.hasCard = true
		}
	}
}
