// Package all brings together the kinds of agents that this build of Leat knows. It is the only package that imports all
// of them; whoever needs one by name gets the kinds as a value.
package all

import (
	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/demo"
	"github.com/leat-dev/leat/agent/replay"
	"github.com/leat-dev/leat/dialect"
)

// Kinds returns all kinds. Those that read streams know the given dialects.
func Kinds(dialects dialect.Registry) agent.Kinds {
	return agent.Kinds{demo.Kind(), replay.Kind(dialects)}
}
