package gateway

import (
	"context"

	"github.com/leat-dev/leat/internal/service/quota"
)

// ID implements [Updater].
func (w *writer) ID() string { return w.id }

// Update implements [Updater].
func (w *writer) Update(ctx context.Context, change func(Tx) error) error {
	return commandError(w.submit(ctx, func(t *tx) error { return change(Tx{t}) }))
}

// Update changes a conversation with which the principal may do action. See [Updater].
func (g *Gateway) Update(ctx context.Context, p Principal, action Action, conversation string, change func(Tx) error) error {
	w, err := g.writers.acquire(ctx, conversation)
	if err != nil {
		return err
	}
	defer w.release()
	s := w.info()
	if err := Decide(p, action, &s); err != nil {
		return err
	}
	return w.Update(ctx, change)
}

// Reserve reserves quota for a principal, outside of any conversation's commit. The caller keeps or cancels the reservation. The error
// is a *Rejection if a limit is exceeded.
func (g *Gateway) Reserve(p Principal, n quota.Need) (*quota.Reservation, error) {
	grant, err := g.quota.Take(p.Account(), n)
	return grant, g.limits.rejection(err)
}

// AddViewer counts a viewer of the principal until leave is called, which may be called twice. Surfaces call it for each stream and each
// subscription, but not for single reads. If a limit is exceeded, the error is a *Rejection.
func (g *Gateway) AddViewer(p Principal) (leave func(), err error) {
	leave, err = g.quota.View(p.Account())
	return leave, g.limits.rejection(err)
}
