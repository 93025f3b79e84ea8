// Package all lists the dialects of this build of Leat in a [dialect.Registry]. It is the only package that imports them all. Other packages
// get the registry as a value and look dialects up by name, so a program that embeds Leat can also register its own, and links only
// those that it uses.
//
// The names are part of configuration files, of stored turns and of metric labels, so they must never change. The test of this package
// runs every dialect with the stored states of earlier versions.
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

// Registry returns all dialects. The order is irrelevant here, because a registry sorts them by name.
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
		// Letta has two formats: that of its REST API, and that of the output of Letta Code.
		letta.Code(),
		letta.Dialect(),
		ollama.Dialect(),
		openaichat.Dialect(),
		openairesponses.Dialect(),
		openclaw.Dialect(),
	)
}
