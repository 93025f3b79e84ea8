package gateway

import "github.com/leat-dev/leat/internal/service/audit"

// Holds returns the gateway's legal holds.
func (g *Gateway) Holds() *Holds { return g.holds }

// Audit returns the audit log. Surfaces let only admins read it.
func (g *Gateway) Audit() *audit.Log { return g.audit }
