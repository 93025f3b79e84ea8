package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/leat-dev/leat/internal/base/markup"
)

// state is what a delivery stores, so that a later one continues it. Its form is stored on disk: a field may be added, but the name
// of one in JSON must not change, because a new version of the gateway continues the deliveries of an old one.
type state struct {
	// ReplyTo is the message that the turn answers, or empty.
	ReplyTo string `json:"replyTo,omitempty"`
	// Texts are the messages with the growing text, in order, and Card is the status card. They are empty for a chat with drafts.
	Texts []string `json:"texts,omitempty"`
	Card  string   `json:"card,omitempty"`
	// Creating is the kind of the message that is being created, or creatingFile. If a later delivery finds it, the message may
	// exist. Created counts the messages whose creation was begun; their keys contain it. It is empty while no creation is in
	// progress.
	Creating Kind `json:"creating,omitempty"`
	Created  int  `json:"created,omitempty"`
	// Answers is how many messages of the answer were sent or possibly sent, and Files how many files. In place, the first of them
	// are also in Texts.
	Answers int `json:"answers,omitempty"`
	Files   int `json:"files,omitempty"`
	// Reacted is set while the message that the turn answers has a reaction.
	Reacted bool `json:"reacted,omitempty"`
	// Newest is the newest message of the chat that is known. It bounds the place of the next message whose creation gets no answer.
	Newest string `json:"newest,omitempty"`
	// Gaps are the places of the messages of the running turn whose creation got no answer.
	Gaps []Gap `json:"lost,omitempty"`
	// Questions are the questions of the turn that were sent.
	Questions []question `json:"asked,omitempty"`
	// Unknown is how many messages of the answer were possibly delivered. If it isn't 0, the delivery ends with
	// channel.ErrUnknownOutcome.
	Unknown int `json:"unknown,omitempty"`
}

// creatingFile is the value of state.Creating while a file is sent.
const creatingFile Kind = "file"

// restore reads the state of an interrupted delivery, if there was one. Whether an interrupted creation took effect isn't known here.
// An idempotent platform is asked by a repetition with the same key. Elsewhere the outcome is recorded as unknown.
func (d *delivery) restore(ctx context.Context) error {
	if d.metadata.State == nil {
		d.state = state{ReplyTo: d.metadata.ReplyTo, Newest: d.metadata.ReplyTo}
		return nil
	}
	if err := json.Unmarshal(d.metadata.State, &d.state); err != nil {
		return fmt.Errorf("state of a delivery: %w", err)
	}
	d.isFinishing = d.state.Answers > 0 || d.state.Creating == Answer || d.state.Creating == creatingFile
	if d.bot.rules.Idempotent {
		return d.repeatCreation(ctx)
	}
	d.recordUnknown()
	return nil
}

// repeatCreation creates the message again whose creation was interrupted. If it exists, that returns its id; otherwise it is new
// and its text will be edited. The placeholder is visible for a moment at most, because the next live update replaces it.
func (d *delivery) repeatCreation(ctx context.Context) error {
	p := Post{Kind: d.state.Creating, IsLive: true, IsSilent: true, Text: markup.Message{Text: "…", HTML: "…"}, Status: &Status{}}
	if p.Kind != Text && p.Kind != Card {
		d.state.Creating = "" // answers, files and questions are repeated with their keys anyway
		return nil
	}
	p.Key = d.creationKey()
	id, err := d.post(ctx, p)
	if err != nil {
		return err
	}
	d.recordCreated(p.Kind, id)
	return d.save(ctx)
}

// recordUnknown records that the outcome of the last request that creates a message is unknown. A lost message of the running
// turn is replaced by another, and looked for at the end. A question is not recorded here: whether it was sent is in its own entry.
func (d *delivery) recordUnknown() {
	switch d.state.Creating {
	case Answer:
		d.state.Answers++
		d.state.Unknown++
	case creatingFile:
		d.state.Files++
		d.state.Unknown++
	case Text, Card:
		d.state.Gaps = append(d.state.Gaps, Gap{Key: d.creationKey(), After: d.state.Newest})
	}
	d.state.Creating = ""
}

// recordCreated records a message that was created. Messages that were lost before are older. So the new message is the end of the
// gap in which each of them has to be.
func (d *delivery) recordCreated(kind Kind, id string) {
	d.state.Creating, d.state.Newest = "", id
	for i := range d.state.Gaps {
		if d.state.Gaps[i].Before == "" {
			d.state.Gaps[i].Before = id
		}
	}
	switch kind {
	case Text:
		d.state.Texts = append(d.state.Texts, id)
	case Card:
		d.state.Card = id
	}
}

// creationKey returns the key of the newest message of the running turn. Created has to be stored before the request, so that no two
// messages get the same key.
func (d *delivery) creationKey() string {
	return d.metadata.Turn + "/live/" + strconv.Itoa(d.state.Created)
}

// save stores the state. A delivery that can't store its state must not continue: after a crash it would repeat what it has already
// sent. So the error ends it.
func (d *delivery) save(ctx context.Context) error {
	if err := d.metadata.Save(ctx, d.state); err != nil {
		return errors.Join(errSave, err)
	}
	return nil
}
