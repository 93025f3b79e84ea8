package feishu

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/leat-dev/leat/internal/channel/live"
)

const (
	// sequenceEpoch is where sequence numbers begin: 2026. They count tenths of a second, which fit into 31 bits until 2032 and
	// rise faster than ten operations a second, the limit of a card. So a restarted gateway continues above the earlier numbers.
	sequenceEpoch = 1_767_225_600
	sequenceStep  = 100 * time.Millisecond
)

// postGrowing sends a message whose text grows: a card entity in streaming mode. The id is that of the message, a slash, and that of
// the card.
func (t *chat) postGrowing(ctx context.Context, p live.Post) (string, error) {
	entity := t.entities[p.Key]
	if entity == "" {
		data, err := cardJSON(newCard(t.at, p))
		if err != nil {
			return "", err
		}
		var created cardID
		params := map[string]string{"type": "card_json", "data": data}
		if err := t.c.client.call(ctx, request{method: http.MethodPost, path: "/cardkit/v1/cards", params: params}, &created); err != nil {
			if errors.Is(err, live.ErrUnknown) {
				return "", errors.Join(live.ErrUnsent, err) // a second card that is in no chat does no harm
			}
			return "", explain(err)
		}
		entity = created.ID
		t.entities[p.Key] = entity
	}
	content, err := cardJSON(map[string]any{"type": "card", "data": map[string]string{"card_id": entity}})
	if err != nil {
		return "", err
	}
	id, err := t.send(ctx, "interactive", content, p.ReplyTo, p.Key)
	if err != nil {
		return "", err
	}
	if t.isResumed { // the platform may have recognised the message of an earlier delivery, which has another card
		var actual cardID
		params := map[string]string{"message_id": id}
		if err := t.c.client.call(ctx, request{method: http.MethodPost, path: "/cardkit/v1/cards/id_convert", params: params}, &actual); err != nil {
			return "", explain(err)
		}
		entity = actual.ID
	}
	return id + "/" + entity, nil
}

// cardID is an answer with the id of a card.
type cardID struct {
	ID string `json:"card_id"`
}

// grow replaces the text of a card. The last text ends the streaming mode; until then, the chat's preview says that the message is
// being generated.
func (t *chat) grow(ctx context.Context, entity string, p live.Post) error {
	path := "/cardkit/v1/cards/" + url.PathEscape(entity)
	params := map[string]any{"content": p.Text.Text, "sequence": t.sequence(entity)}
	err := t.c.client.call(ctx, request{method: http.MethodPut, path: path + "/elements/" + textElement + "/content", params: params}, nil)
	switch {
	case has(err, codeClosed): // the platform ends the mode after some minutes
		if err := t.setStreaming(ctx, path, entity, true); err != nil {
			return err
		}
		return errors.Join(live.ErrRepeat, err)
	case err == nil && !p.IsLive:
		return t.setStreaming(ctx, path, entity, false)
	}
	return t.explain(entity, err)
}

// explain returns the error of an operation on a card. If another clock has given it higher numbers, the operation is repeated with one
// above those.
func (t *chat) explain(entity string, err error) error {
	if has(err, codeSequence) {
		t.sequences[entity] += int64(time.Minute / sequenceStep)
		return errors.Join(live.ErrRepeat, err)
	}
	return explain(err)
}

// setStreaming begins or ends the streaming mode of a card.
func (t *chat) setStreaming(ctx context.Context, path, entity string, isOn bool) error {
	settings, err := cardJSON(map[string]any{"config": map[string]any{"streaming_mode": isOn}})
	if err != nil {
		return err
	}
	params := map[string]any{"settings": settings, "sequence": t.sequence(entity)}
	return t.explain(entity, t.c.client.call(ctx, request{method: http.MethodPatch, path: path + "/settings", params: params}, nil))
}

// sequence returns the number of the next operation on a card.
func (t *chat) sequence(entity string) int64 {
	n := max(t.sequences[entity]+1, time.Since(time.Unix(sequenceEpoch, 0)).Milliseconds()/sequenceStep.Milliseconds())
	t.sequences[entity] = n
	return n
}
