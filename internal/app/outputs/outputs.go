// Package outputs lists the outputs of this build of Leat: the routes for clients of other protocols. A new output is registered in [List]
// and nowhere else: the command, its configuration, package leat and the tests that call all outputs get them from the list.
package outputs

import (
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/a2a"
	"github.com/leat-dev/leat/internal/server/agui"
	"github.com/leat-dev/leat/internal/server/compat"
	"github.com/leat-dev/leat/internal/server/durable"
	"github.com/leat-dev/leat/internal/server/langgraph"
	"github.com/leat-dev/leat/internal/server/letta"
	"github.com/leat-dev/leat/internal/server/openclaw"
	"github.com/leat-dev/leat/internal/server/responses"
	"github.com/leat-dev/leat/internal/server/vercel"
)

// DurableStreams is the name of the output with streams.
const DurableStreams = "durable_streams"

// Output is a group of routes that can be switched on and off.
type Output struct {
	// Name is the key in the section outputs of the configuration, so it must never change. An output without a name is always on.
	Name    string
	Default bool   // whether it is on if the configuration doesn't have the key
	Doc     string // the page that describes it, in docs
	// Register adds the routes to a server.
	Register func(*server.Server, *gateway.Gateway)
}

// Options configure those outputs that have options.
type Options struct {
	DurableStreams durable.Options
	ControlUI      string // the folder of OpenClaw's Control UI, or "" to serve none
}

// List returns all outputs.
func List(opt Options) []Output {
	return []Output{
		{"", true, "models.md", compat.Register},
		{"a2a", true, "outputs/a2a.md", a2a.Register},
		{"agui", true, "outputs/agui.md", agui.Register},
		{DurableStreams, true, "outputs/durable-streams.md", func(srv *server.Server, gw *gateway.Gateway) { durable.Register(srv, gw, opt.DurableStreams) }},
		{"langgraph", true, "outputs/langgraph.md", langgraph.Register},
		{"letta", true, "outputs/letta.md", letta.Register},
		{"openclaw", false, "outputs/openclaw.md", func(srv *server.Server, gw *gateway.Gateway) { openclaw.Register(srv, gw, opt.ControlUI) }},
		{"responses", true, "outputs/responses.md", responses.Register},
		{"vercel", true, "outputs/vercel.md", vercel.Register},
	}
}
