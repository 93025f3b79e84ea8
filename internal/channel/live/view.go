package live

import (
	"time"
	"unicode/utf8"
)

const (
	// cardGap is the time between two edits of the card that change more than the elapsed time, and heartbeat that of the others. The
	// elapsed time changes every second; an edit for each change would use up the limit of the chat.
	cardGap   = 500 * time.Millisecond
	heartbeat = 5 * time.Second
	// firstRunes is how long a text must be before a message is created for it, and firstWait how long a shorter one waits. A message
	// notifies, and a notification with one word is of no use. The wait makes short answers appear anyway.
	firstRunes = 30
	firstWait  = 2 * time.Second
)

// action is a request that changes what is seen of a running turn. Each is one request to the platform, so the limits of a chat can
// be applied to it.
type action int

const (
	noAction action = iota
	showTyping
	showDraft
	showText
	showCard
	askQuestion
	closeQuestion
	reactToMessage
)

// view decides what to show of a running turn, and when. It is pure: the caller passes the time and reports what it did.
type view struct {
	drafts  bool // the text is shown as a draft, and not as a message that is edited
	hasText bool // a message for the text exists
	hasCard bool // a message for the card exists
	asks    bool // a question is to be sent
	closes  bool // the buttons of a question are to be removed
	reacts  bool // the message that the turn answers is to get a reaction

	// The times of the platform: the least one between two drafts, and how long a draft and "typing" stay without a repetition.
	draftGap, draftLife, typingLife time.Duration

	// What should be seen, and what is.
	text, card         string
	seenText, seenCard string
	since              time.Time // when text became other than seenText

	typingAt, textAt, cardAt time.Time // of the last request of each kind
}

// update sets what should be seen. An empty text leaves the one before, until the next iteration has written something. Otherwise a
// message would be emptied or deleted at the beginning of each iteration, and created again a moment later.
func (v *view) update(at time.Time, text, card string) {
	if text != "" {
		if v.text == v.seenText && text != v.text {
			v.since = at
		}
		v.text = text
	}
	v.card = card
}

// next returns the most urgent action and when it is due. free is when the chat allows messages and edits, unblocked when it allows
// drafts and typing. It doesn't change the view, so it can be called again after each event. The times of an action may be in the
// past: then it is overdue.
func (v *view) next(free, unblocked time.Time) (do action, at time.Time) {
	var lastAt time.Time // of the last request of the same kind as do
	consider := func(a action, due, last time.Time) {
		// Of two that are due at the same time, because the chat allows only one, the kind that waited longer comes first.
		if do == noAction || due.Before(at) || due.Equal(at) && last.Before(lastAt) {
			do, at, lastAt = a, due, last
		}
	}
	if v.asks { // first, because the turn waits
		return askQuestion, free
	}
	if v.reacts {
		return reactToMessage, unblocked
	}
	if v.closes {
		consider(closeQuestion, free, time.Time{})
	}
	switch {
	case v.text == "":
	case v.drafts && v.text != v.seenText:
		consider(showDraft, latest(v.textAt.Add(v.draftGap), unblocked), v.textAt)
	// The draft shows everything, but it would disappear without a repetition.
	case v.drafts:
		consider(showDraft, latest(v.textAt.Add(v.draftLife), unblocked), v.textAt)
	// The first message waits until there is enough to read.
	case !v.hasText:
		due := v.since
		if utf8.RuneCountInString(v.text) < firstRunes {
			due = due.Add(firstWait)
		}
		consider(showText, latest(due, free), v.textAt)
	case v.text != v.seenText:
		consider(showText, latest(v.textAt, free), v.textAt)
	}
	switch {
	case v.card == "":
	case !v.hasCard:
		consider(showCard, free, v.cardAt)
	case v.card != v.seenCard:
		consider(showCard, latest(v.cardAt.Add(cardGap), free), v.cardAt)
	// Only the elapsed time has changed.
	default:
		consider(showCard, latest(v.cardAt.Add(heartbeat), free), v.cardAt)
	}
	if v.text == "" && v.card == "" {
		consider(showTyping, latest(v.typingAt.Add(v.typingLife), unblocked), v.typingAt)
	}
	return do, at
}

// record records that an action was carried out, with text and card as they were then. isSeen is set if all of it is seen now. If
// not, it is repeated with the state that is current then, no earlier than the next regular time. Failures are recorded as well,
// because the next try has to keep the same distance from this one.
func (v *view) record(a action, at time.Time, text, card string, isSeen bool) {
	switch a {
	case showTyping:
		v.typingAt = at
	case showDraft, showText:
		v.textAt = at
		if isSeen {
			v.seenText = text
		}
	case showCard:
		v.cardAt = at
		if isSeen {
			v.seenCard = card
		}
	}
}
