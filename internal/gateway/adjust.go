package gateway

// Adjust replaces all settings at once.
func (g *Gateway) Adjust(s Settings) {
	s.setDefaults()
	g.liveSettings.Store(&s)
	g.pusher.SetLease(s.Lease)
	g.ledger.Reprice(s.Prices)
}
