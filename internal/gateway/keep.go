package gateway

import "context"

// Keep stores a value under a key of a room of its own with a conversation that the principal may write in: it is durable
// when Keep returns, and goes with the conversation. nil takes it away.
func (g *Gateway) Keep(ctx context.Context, p Principal, conversation, key string, value []byte) error {
	o, err := g.owner(ctx, conversation)
	if err != nil {
		return err
	}
	defer o.release()
	s := o.info()
	if err := Decide(p, ActionWrite, &s); err != nil {
		return err
	}
	return o.submit(ctx, false, func(t *tx) error {
		t.set(key, value, 0)
		return nil
	})
}
