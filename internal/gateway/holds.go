package gateway

import "github.com/leat-dev/leat/internal/service/audit"

// Holds returns the gateway's legal holds.
func (g *Gateway) Holds() *Holds { return g.holds }

// Audit returns the log of what was done. Reading it is the admin's; a surface asks Decide.
func (g *Gateway) Audit() *audit.Log { return g.audit }
