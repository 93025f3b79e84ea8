// Package all brings together the dialects that this build of Leat knows. It is the only package that imports all of
// them; whoever needs one by name gets the registry as a value.
package all

import (
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/anthropic"
	"github.com/leat-dev/leat/dialect/elizaactions"
	"github.com/leat-dev/leat/dialect/leat"
	"github.com/leat-dev/leat/dialect/openclaw"
)

// Registry returns all dialects.
func Registry() dialect.Registry {
	return dialect.NewRegistry(
		anthropic.Dialect(),
		elizaactions.Dialect(),
		leat.Dialect(),
		openclaw.Dialect(),
	)
}
