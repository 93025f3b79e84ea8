// Package all lists the agent kinds of this build of Leat. It is the only package that imports all of them. Other packages get the list as
// an [agent.Kinds] value, so that they don't depend on the kinds. A new kind is added to [Kinds] here and nowhere else.
package all

import (
	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/acp"
	"github.com/leat-dev/leat/agent/agentsdk"
	"github.com/leat-dev/leat/agent/demo"
	"github.com/leat-dev/leat/agent/eliza"
	"github.com/leat-dev/leat/agent/exec"
	"github.com/leat-dev/leat/agent/http"
	"github.com/leat-dev/leat/agent/letta"
	"github.com/leat-dev/leat/agent/llm"
	"github.com/leat-dev/leat/agent/openclaw"
	"github.com/leat-dev/leat/agent/plugin"
	"github.com/leat-dev/leat/agent/protocol"
	"github.com/leat-dev/leat/agent/replay"
	"github.com/leat-dev/leat/dialect"
)

// Kinds returns all kinds, in the order of their names except for the last two groups, each of which a package
// returns as a list. Those whose upstreams send streams look up dialects in the registry, which also counts
// unknown frames. A caller that needs only some kinds, such as a program that embeds Leat, builds its own
// [agent.Kinds] instead.
func Kinds(dialects dialect.Registry) agent.Kinds {
	kinds := agent.Kinds{
		acp.Kind(dialects), agentsdk.Kind(dialects), demo.Kind(), eliza.Kind(dialects), exec.Kind(dialects), http.Kind(dialects), letta.Kind(dialects), openclaw.Kind(dialects),
		plugin.Kind(dialects), replay.Kind(dialects),
	}
	return append(append(kinds, protocol.Kinds(dialects)...), llm.Kinds(dialects)...)
}
