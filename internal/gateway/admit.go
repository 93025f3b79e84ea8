package gateway

// Admits returns nil if a new turn of an agent would be admitted now, and otherwise the error with which it would be refused.
// If agent is empty, it is the default agent. It is for callers that create a conversation for the turn; Do checks again.
func (g *Gateway) Admits(agent string) error {
	if g.cfg.Admit == nil {
		return nil
	}
	if agent == "" {
		agent = g.cfg.DefaultAgent
	}
	return g.cfg.Admit(agent)
}
