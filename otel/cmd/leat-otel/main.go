// Command leat-otel is leat with OpenTelemetry: its serve tells a collector of each turn. It takes what leat takes, and
// OpenTelemetry's environment variables.
package main

import (
	"os"

	"github.com/leat-dev/leat/internal/app/cli"
	"github.com/leat-dev/leat/otel/tracing"
)

func main() { os.Exit(cli.Program{Tracing: tracing.Setup}.Main()) }
