// Command leat is the gateway and the tools around it; "leat --help" lists them. All of it is in internal/app/cli, so that
// other builds of the program, such as the one with OpenTelemetry, share it.
package main

import (
	"os"

	"github.com/leat-dev/leat/internal/app/cli"
)

func main() { os.Exit(cli.Program{}.Main()) }
