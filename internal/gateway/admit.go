package gateway

// Admits returns why a new turn of an agent would be refused now, nil where it would not. An empty name is the default agent. It
// is for those who make a conversation for the turn; the turn itself is asked again.
func (g *Gateway) Admits(agent string) error {
	if g.cfg.Admit == nil {
		return nil
	}
	if agent == "" {
		agent = g.cfg.DefaultAgent
	}
	return g.cfg.Admit(agent)
}
