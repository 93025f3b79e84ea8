package gateway

// Adjust takes new settings over, all of them at once.
func (g *Gateway) Adjust(s Settings) {
	c := Config{
		Drain: s.Drain, Lease: s.Lease, WaitLimit: s.WaitLimit, TurnLimit: s.TurnLimit, MaxMessage: s.MaxMessage, MaxQueued: s.MaxQueued,
		HistoryMessages: s.HistoryMessages, HistoryBytes: s.HistoryBytes, Prices: s.Prices,
	}
	c.setDefaults()
	g.live.Store(c.settings())
	g.pusher.SetLease(c.Lease)
	g.ledger.Reprice(s.Prices)
}
