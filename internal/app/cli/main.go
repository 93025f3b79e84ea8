package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/leat-dev/leat/agent"
	agents "github.com/leat-dev/leat/agent/all"
	"github.com/leat-dev/leat/dialect"
	dialects "github.com/leat-dev/leat/dialect/all"
	"github.com/leat-dev/leat/internal/app/config"
)

// The exit statuses.
const (
	exitError = 1
	exitUsage = 2
	exitCut   = 3
)

// errCut says that a stream was cut short.
var errCut = errors.New("the stream was cut short")

// commands are what the program does.
type commands struct {
	Serve    serveCmd    `cmd:"" help:"Run the gateway."`
	Chat     chatCmd     `cmd:"" help:"Talk to an agent in the terminal."`
	Tail     tailCmd     `cmd:"" help:"Follow a conversation."`
	Send     sendCmd     `cmd:"" help:"Say something in a conversation, without waiting for the answer."`
	Stop     stopCmd     `cmd:"" help:"Stop what runs in a conversation."`
	Turn     turnCmd     `cmd:"" help:"Look into a turn: what was exchanged with its agent, and what came of it."`
	Record   recordCmd   `cmd:"" help:"Ask an agent one thing, and write what is exchanged with it to a file."`
	Decode   decodeCmd   `cmd:"" help:"Read a recorded stream of an agent."`
	Backup   backupCmd   `cmd:"" help:"Copy a gateway's data to a file, while it runs."`
	Restore  restoreCmd  `cmd:"" help:"Make a data folder from a backup."`
	Audit    auditCmd    `cmd:"" help:"Show who did what in a gateway."`
	Export   exportCmd   `cmd:"" help:"Write down all that a gateway stores of a subject."`
	Import   importCmd   `cmd:"" help:"Bring the conversations of an export into a gateway."`
	Purge    purgeCmd    `cmd:"" help:"Remove all that a gateway stores of a subject, or what is older than it may be."`
	Hold     holdCmd     `cmd:"" help:"Keep data from being removed by anybody: a legal hold."`
	Usage    usageCmd    `cmd:"" help:"Show what turns used and cost."`
	Agents   agentsCmd   `cmd:"" help:"List the configured agents, and say which of them are there."`
	Plugins  pluginsCmd  `cmd:"" help:"Install, list and remove plugins of a gateway."`
	Dialects dialectsCmd `cmd:"" help:"List the formats of streams that can be read."`
	Config   configCmd   `cmd:"" help:"Look at the configuration."`
	Doctor   doctorCmd   `cmd:"" help:"Look at what the gateway stands on: configuration, disk, clock, ports, agents, and what lies between it and its readers."`
	Version  versionCmd  `cmd:"" help:"Say which version this is."`
}

// app is what a command gets from the world.
type app struct {
	Program
	ctx      context.Context
	in       io.Reader
	out, err io.Writer
	lookup   func(string) (string, bool)
	level    slog.LevelVar // of the log
	// reload loads the configuration again; nil if there is no configuration file.
	reload func() (config.Config, error)

	dialects dialect.Registry
	kinds    agent.Kinds
}

func (a *app) getenv(name string) string {
	v, _ := a.lookup(name)
	return v
}

// exit is how kong asks for the end of the program.
type exit int

// run carries out one command line and returns the exit status.
func (a *app) run(args []string) (status int) {
	defer func() {
		if r := recover(); r != nil {
			code, ok := r.(exit)
			if !ok {
				panic(r)
			}
			status = int(code)
		}
	}()
	a.dialects = dialects.Registry()
	a.kinds = agents.Kinds(a.dialects)
	var cmd commands
	parser, err := kong.New(&cmd,
		kong.Name("leat"),
		kong.Description("A streaming gateway for AI agents. Exit status: 0 all went well, 1 error, 2 wrong usage or configuration, 3 a decoded stream was cut short."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.Writers(a.out, a.err),
		kong.Exit(func(code int) { panic(exit(code)) }),
		kong.Bind(a),
		kong.Vars{"kinds": a.kindsHelp()},
	)
	if err != nil {
		panic(err) // the tags above are wrong
	}
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help": // as other programs have it
		args = append(slices.Clone(args[1:]), "--help")
	case args[0] == "--version":
		args = append([]string{"version"}, args[1:]...)
	}
	k, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(a.err, "leat: %v\n", err)
		var usage *kong.ParseError
		if errors.As(err, &usage) && usage.Context.Command() == "" {
			fmt.Fprintln(a.err, "Say leat --help for the commands.")
		} else if usage != nil {
			fmt.Fprintf(a.err, "Say leat %s --help for what it takes.\n", usage.Context.Selected().Name)
		}
		return exitUsage
	}
	if err := k.Run(); err != nil {
		return a.fail(err)
	}
	return 0
}

// fail tells of an error, a line for each, and returns its exit status.
func (a *app) fail(err error) int {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(a.err, "leat: %s\n", clean(strings.TrimPrefix(line, "leat: ")))
	}
	switch {
	case errors.Is(err, config.ErrInvalid), errors.Is(err, errUsage):
		return exitUsage
	case errors.Is(err, errCut):
		return exitCut
	}
	return exitError
}

// errUsage says that the command line asks for what can't be.
var errUsage = errors.New("usage")

func (a *app) kindsHelp() string {
	s := ""
	for i, k := range a.kinds {
		if i > 0 {
			s += ", "
		}
		s += k.Name
		if k.Target != "" {
			s += ":" + k.Target
		}
	}
	return s
}
