package gateway

import "context"

// SetValue stores a key that belongs to a conversation that the principal may write. It is durable when SetValue returns and
// is deleted with the conversation. If value is nil, the key is deleted. Keys must begin with a prefix of the caller's own.
func (g *Gateway) SetValue(ctx context.Context, p Principal, conversation, key string, value []byte) error {
	w, err := g.writer(ctx, conversation)
	if err != nil {
		return err
	}
	defer w.release()
	s := w.info()
	if err := Decide(p, ActionWrite, &s); err != nil {
		return err
	}
	return w.submit(ctx, false, func(t *tx) error {
		t.set(key, value, 0)
		return nil
	})
}
