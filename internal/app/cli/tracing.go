package cli

import (
	"context"
	"os"

	"github.com/leat-dev/leat/internal/app/serve"
)

// Program is what a build of leat adds to the standard program. The zero value is leat itself.
type Program struct {
	// Tracing opens the tracer that serve uses; nil traces nothing.
	Tracing serve.Tracing
}

// Main executes the command line of the process and returns its exit status. It is all that the main function of a
// build calls, apart from os.Exit.
func (p Program) Main() int {
	a := &app{Program: p, ctx: context.Background(), in: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, lookup: os.LookupEnv}
	return a.run(os.Args[1:])
}
