package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/channel"
)

// maxLost is how many messages with an unknown outcome a turn may have before nothing more is shown of it while it runs.
const maxLost = 3

// The values of state.Creating.
const (
	creatingText  = "text"
	creatingCard  = "card"
	creatingFinal = "final"
)

// errCut means that the events ended before the turn. The delivery is repeated.
var errCut = errors.New("telegram: the stream of the turn was cut")

// state is what a delivery stores, so that a later one continues it.
type state struct {
	// ReplyTo is the number of the message that the turn answers, or 0 if it is not known.
	ReplyTo int64 `json:"replyTo,omitempty"`
	// Draft is the id of the draft. It derives from nothing that another turn has, because two turns with one draft would overwrite
	// each other's text.
	Draft int64 `json:"draft"`
	// Text and Card are the numbers of the messages that show the running turn, or 0.
	Text int64 `json:"text,omitempty"`
	Card int64 `json:"card,omitempty"`
	// Creating is one of the constants above while a message is created. If a later delivery finds it, the message may exist.
	Creating string `json:"creating,omitempty"`
	// From is the position in the final text behind the last message that was sent, or is being sent.
	From int `json:"from,omitempty"`
	// Files is how many files of the turn were sent, or are being sent.
	Files int `json:"files,omitempty"`
	// Newest is the highest number of a message in the chat that is known.
	Newest int64 `json:"newest,omitempty"`
	// Lost are the messages whose creation got no answer.
	Lost []gap `json:"lost,omitempty"`
	// Asked are the questions of the turn that were sent.
	Asked []question `json:"asked,omitempty"`
	// Unknown is how many messages of the final text were possibly delivered.
	Unknown int `json:"unknown,omitempty"`
}

// delivery is one call of SendStream.
type delivery struct {
	*bot
	at        place
	gate      *gate
	metadata  channel.StreamMetadata
	stream    *channel.Stream
	state     state
	view      view
	startedAt time.Time
	doc       *markup.Document // the text as it was rendered last
	failed    int              // consecutive failures of live updates
	pause     time.Time        // no live update before
}

// SendStream implements [channel.StreamChannel].
func (s *streamer) SendStream(ctx context.Context, chatID string, metadata channel.StreamMetadata, events <-chan channel.StreamEvent) error {
	at, err := parsePlace(chatID)
	if err != nil {
		return err
	}
	d := &delivery{bot: s.bot, at: at, gate: s.gates.of(at.chat), metadata: metadata, stream: channel.NewStream(metadata.Turn), startedAt: time.Now(), doc: markup.Parse("")}
	defer d.gate.use(-1)
	if err := d.restore(); err != nil {
		return err
	}
	d.view.drafts = at.isPrivate()
	d.view.hasText, d.view.hasCard = d.state.Text != 0, d.state.Card != 0
	if err := d.follow(ctx, events); err != nil {
		return err
	}
	return d.finish(ctx)
}

// restore reads the state of an interrupted delivery. A message that was being created counts as one with an unknown outcome.
func (d *delivery) restore() error {
	if d.metadata.State == nil {
		ref := messageNumber(d.metadata.ReplyTo)
		d.state = state{Draft: draftID(d.metadata.Turn), ReplyTo: ref, Newest: ref}
		return nil
	}
	if err := json.Unmarshal(d.metadata.State, &d.state); err != nil {
		return fmt.Errorf("telegram: state of a delivery: %w", err)
	}
	d.recordUnknown()
	return nil
}

// recordUnknown records that the outcome of the last request that creates a message is unknown. A lost message of the running
// turn is replaced by another, and looked for at the end.
func (d *delivery) recordUnknown() {
	switch d.state.Creating {
	case creatingFinal:
		d.state.Unknown++
	case creatingText, creatingCard:
		d.state.Lost = append(d.state.Lost, gap{After: d.state.Newest})
	}
	d.state.Creating = ""
}

// created records the number of a message. Messages that were lost before have lower numbers.
func (d *delivery) created(id int64) {
	d.state.Newest = max(d.state.Newest, id)
	for i := range d.state.Lost {
		if d.state.Lost[i].Before == 0 {
			d.state.Lost[i].Before = id
		}
	}
}

// quote returns the number of the message that the answer should be a reply to. In private chats that is clear without.
func (d *delivery) quote() int64 {
	if d.at.isPrivate() {
		return 0
	}
	return d.state.ReplyTo
}

// draftID returns the id of a turn's draft: a positive number that is the same each time.
func draftID(turn string) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(turn)) // never fails
	return int64(h.Sum32()>>1) | 1
}

// follow shows the running turn until it has ended. One loop does everything, so at most one request is in flight; while it is,
// events wait, and the next request shows the newest state.
func (d *delivery) follow(ctx context.Context, events <-chan channel.StreamEvent) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		do, at := noAction, time.Time{}
		if len(d.state.Lost) < maxLost {
			do, at = d.view.next(latest(d.gate.free(), d.pause), latest(d.gate.unblocked(), d.pause))
		}
		wait := time.Until(at)
		if do == noAction {
			wait = heartbeat // nothing is due before the next event
		}
		timer.Reset(max(0, wait))
		select {
		case e, ok := <-events:
			if !ok {
				return d.checkEnd(ctx)
			}
			if err := d.stream.Apply(e); err != nil {
				return err
			}
			d.view.update(time.Now(), d.stream.Iteration(), card(d.stream))
			d.view.asks, d.view.closes = d.unasked() != nil, d.closed() != nil
			continue
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
		if do != noAction {
			if err := d.perform(ctx, do); err != nil {
				return err
			}
		}
	}
}

// checkEnd returns nil if the events ended because the turn did.
func (d *delivery) checkEnd(ctx context.Context) error {
	if turn := d.stream.Turn(); d.stream.IsRemoved() || turn != nil && !turn.Unfinished() {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errCut
}

// finish sends the final text and deletes what showed the running turn. If the final text can't be sent, that stays, because it
// is all that the person has.
func (d *delivery) finish(ctx context.Context) error {
	if !d.stream.IsRemoved() {
		final := report{
			c: d.bot, gate: d.gate, at: d.at, text: d.stream.Final(), replyTo: d.quote(), from: d.state.From, unknown: d.state.Unknown,
			before: func(ctx context.Context, next int) error {
				d.state.Creating, d.state.From = creatingFinal, next
				return d.metadata.Save(ctx, d.state)
			},
			after: func(ctx context.Context, id int64) error {
				d.state.Creating = ""
				d.created(id)
				return d.metadata.Save(ctx, d.state)
			},
		}
		if err := final.send(ctx); err != nil {
			return err
		}
		d.state.Unknown, d.state.From = final.unknown, final.from
		if err := d.sendFiles(ctx); err != nil {
			return err
		}
	}
	if err := d.tidy(ctx); err != nil {
		return err
	}
	if d.state.Unknown > 0 {
		return channel.ErrUnknownOutcome
	}
	return nil
}
