// Package all brings together the dialects that this build of Leat knows. It is the only package that imports all of
// them; whoever needs one by name gets the registry as a value.
package all

import (
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/a2a"
	"github.com/leat-dev/leat/dialect/acp"
	"github.com/leat-dev/leat/dialect/agentsdk"
	"github.com/leat-dev/leat/dialect/agui"
	"github.com/leat-dev/leat/dialect/aisdk"
	"github.com/leat-dev/leat/dialect/anthropic"
	"github.com/leat-dev/leat/dialect/elizaactions"
	"github.com/leat-dev/leat/dialect/elizachat"
	"github.com/leat-dev/leat/dialect/gemini"
	"github.com/leat-dev/leat/dialect/langgraph"
	"github.com/leat-dev/leat/dialect/leat"
	"github.com/leat-dev/leat/dialect/letta"
	"github.com/leat-dev/leat/dialect/ollama"
	"github.com/leat-dev/leat/dialect/openaichat"
	"github.com/leat-dev/leat/dialect/openairesponses"
	"github.com/leat-dev/leat/dialect/openclaw"
)

// Registry returns all dialects.
func Registry() dialect.Registry {
	return dialect.NewRegistry(
		a2a.Dialect(),
		acp.Dialect(),
		agentsdk.Dialect(),
		agui.Dialect(),
		aisdk.Dialect(),
		anthropic.Dialect(),
		elizaactions.Dialect(),
		elizachat.Dialect(),
		gemini.Dialect(),
		langgraph.Dialect(),
		leat.Dialect(),
		letta.Code(),
		letta.Dialect(),
		ollama.Dialect(),
		openaichat.Dialect(),
		openairesponses.Dialect(),
		openclaw.Dialect(),
	)
}
