// The requests of a turn to people: the open ones, and those that were answered.

package transcript

import (
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
)

// wait adds a question, unless it is open already or was answered by a later event.
func (t *Transcript) wait(turn *Turn, e *event.Event) {
	r := e.Get().Request
	if r == nil || e.Seq <= turn.answeredAt[r.ID] {
		return
	}
	if slices.ContainsFunc(turn.Requests, func(open *Request) bool { return open.ID == r.ID }) {
		return
	}
	turn.Requests = append(turn.Requests, &Request{Request: *r, At: e.At, seq: e.Seq})
	if turn.State == TurnRunning {
		turn.State = TurnWaiting
	}
}

// answer closes a question and adds it to the answered ones. The seq of the answer is stored, so that the question isn't opened again if its
// event arrives once more. The answer to a question that isn't open changes nothing else.
func (t *Transcript) answer(turn *Turn, e *event.Event) {
	a := e.Get().Answer
	if a == nil || e.Seq <= turn.answeredAt[a.ID] {
		return
	}
	if turn.answeredAt == nil {
		turn.answeredAt = map[string]int64{}
	}
	turn.answeredAt[a.ID] = e.Seq
	isAnswered := func(r *Request) bool { return r.ID == a.ID && r.seq < e.Seq }
	if i := slices.IndexFunc(turn.Requests, isAnswered); i >= 0 {
		turn.addAnswered(&turn.Requests[i].Request, a, e.At)
		turn.Requests = slices.DeleteFunc(turn.Requests, isAnswered)
	}
	if len(turn.Requests) == 0 && turn.State == TurnWaiting {
		turn.State = TurnRunning
	}
}

// addAnswered adds a question to the answered ones, and drops the oldest one above the limit. Snapshots share the memory of the list, so it
// is written only after the end of every copy.
func (t *Turn) addAnswered(r *event.Request, a *event.Answer, at int64) {
	list := t.Answered
	if extra := len(list) - MaxAnswered + 1; extra > 0 {
		list = list[extra:]
	}
	t.Answered = append(list, AnsweredRequest{
		ID: r.ID, Kind: r.Kind, Tool: r.Tool, Part: r.Part, Prompt: firstCharacters(r.Prompt, MaxAnsweredText),
		Decision: a.Decision, Text: firstCharacters(a.Text, MaxAnsweredText), Subject: a.Subject, At: at,
	})
}

// firstCharacters returns the first n characters of s. A shorter result is a copy, so that it doesn't keep s in memory.
func firstCharacters(s string, n int) string {
	for i := range s {
		if n == 0 {
			return strings.Clone(s[:i])
		}
		n--
	}
	return s
}

// Forget removes the name of a subject from the turns that it stopped or whose requests it answered, and the texts of these answers. It is
// what remains to be removed after the log was blanked: a fold of the blanked log has none of them.
func (t *Transcript) Forget(subject string) {
	for _, turn := range t.Turns {
		if turn.StoppedBy == subject {
			turn.StoppedBy = ""
		}
		by := func(a AnsweredRequest) bool { return a.Subject == subject }
		if !slices.ContainsFunc(turn.Answered, by) {
			continue
		}
		turn.Answered = slices.Clone(turn.Answered) // snapshots share the old list
		for i := range turn.Answered {
			if a := &turn.Answered[i]; by(*a) {
				a.Text, a.Subject = "", ""
			}
		}
	}
}
