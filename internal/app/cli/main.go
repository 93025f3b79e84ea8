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
	"github.com/leat-dev/leat/internal/app/cli/console"
	"github.com/leat-dev/leat/internal/app/config"
	channels "github.com/leat-dev/leat/internal/channel/all"
)

// The exit statuses of failed commands.
const (
	// exitError is any failure: of the command itself, of the network, or of a check.
	exitError = 1
	// exitUsage means that the command line or the configuration is wrong. A service manager should not restart the
	// program.
	exitUsage = 2
	// exitCut means that decode read a stream that stopped before its end.
	exitCut = 3
)

// errCut is the error if a stream stopped before its end.
var errCut = errors.New("the stream was cut short")

// commands are the commands of the program, with their help texts. kong makes flags and arguments from the structs,
// in the order of their fields, and calls the method Run of the one that was chosen.
type commands struct {
	Serve    serveCmd    `cmd:"" help:"Run the gateway."`
	Chat     chatCmd     `cmd:"" help:"Talk to an agent in the terminal."`
	List     listCmd     `cmd:"" help:"List your conversations."`
	Tail     tailCmd     `cmd:"" help:"Follow a conversation."`
	Send     sendCmd     `cmd:"" help:"Send a message without waiting for the answer."`
	Stop     stopCmd     `cmd:"" help:"Stop the running turns of a conversation."`
	ACP      acpCmd      `cmd:"" name:"acp" help:"Make the agents available in an editor, which starts this command and speaks the Agent Client Protocol."`
	MCP      mcpCmd      `cmd:"" name:"mcp" help:"Make the agents tools of another program, which starts this command and speaks the Model Context Protocol."`
	Turn     turnCmd     `cmd:"" help:"Inspect a turn: the bytes exchanged with its agent, and the resulting events."`
	Record   recordCmd   `cmd:"" help:"Send one message to an agent and record the exchanged bytes in a file."`
	Decode   decodeCmd   `cmd:"" help:"Decode the recorded stream of an agent."`
	Backup   backupCmd   `cmd:"" help:"Copy a gateway's data to a file while the gateway runs."`
	Restore  restoreCmd  `cmd:"" help:"Create a data folder from a backup."`
	Audit    auditCmd    `cmd:"" help:"Show the audit log: who did what."`
	Export   exportCmd   `cmd:"" help:"Export everything that a gateway stores about a subject."`
	Import   importCmd   `cmd:"" help:"Import the conversations of an export, or a session of an agent's upstream."`
	Purge    purgeCmd    `cmd:"" help:"Delete everything that a gateway stores about a subject, or expired conversations."`
	Hold     holdCmd     `cmd:"" help:"Protect data from deletion with a legal hold."`
	Usage    usageCmd    `cmd:"" help:"Show the usage and cost of turns."`
	Agents   agentsCmd   `cmd:"" help:"List the configured agents, check them, or discover what their servers offer."`
	Plugins  pluginsCmd  `cmd:"" help:"Install, list and remove plugins."`
	Channels channelsCmd `cmd:"" help:"Show the channels, admit people, and send messages to chats."`
	Dialects dialectsCmd `cmd:"" help:"List the stream formats that Leat can decode."`
	Config   configCmd   `cmd:"" help:"Check or print the configuration."`
	Doctor   doctorCmd   `cmd:"" help:"Check the configuration, disk, clock, ports, agents, and the network between the gateway and its readers."`
	Version  versionCmd  `cmd:"" help:"Print the version."`

	Completion completionCmd `cmd:"" help:"Print the completion script of a shell."`
	Complete   completeCmd   `cmd:"" hidden:""`
}

// app is the environment of a command: input, output, environment variables and the registries. Tests replace all of
// them. A command uses them instead of package os, so that tests can run several commands in one process.
type app struct {
	Program
	ctx            context.Context
	in             io.Reader
	stdout, stderr io.Writer
	lookup         func(string) (string, bool)
	level          slog.LevelVar // of the logger
	// reload loads the configuration again; nil without a configuration file.
	reload func() (config.Config, error)

	dialects dialect.Registry
	kinds    agent.Kinds
}

// getenv returns an environment variable, or "" if it is not set.
func (a *app) getenv(name string) string {
	v, _ := a.lookup(name)
	return v
}

// exit is the panic with which kong ends the program after it has printed help. [app.run] recovers it and returns its
// value as the exit status, so that only main calls os.Exit.
type exit int

// run executes a command line and returns its exit status. Without arguments it prints the help. An error in the
// command line ends with the command that prints the right usage; kong's own usage text would fill the screen.
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
		kong.Description("A streaming gateway for AI agents. Exit status: 0 success, 1 error, 2 wrong usage or configuration, 3 a decoded stream was cut short."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.Writers(a.stdout, a.stderr),
		kong.Exit(func(code int) { panic(exit(code)) }),
		kong.Bind(a),
		kong.Vars{"url": defaultURL, "kinds": a.kindsHelp(), "channels": strings.Join(channels.Names(), ", ")},
	)
	if err != nil {
		panic(err) // a mistake in the struct tags above
	}
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help": // an alias that other programs have
		args = append(slices.Clone(args[1:]), "--help")
	case args[0] == "--version":
		args = append([]string{"version"}, args[1:]...)
	}
	k, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(a.stderr, "leat: %v\n", err)
		// kong names the command that it had recognized before the error. Without one, the list of commands helps
		// more.
		if usage, ok := errors.AsType[*kong.ParseError](err); ok && usage.Context.Command() == "" {
			fmt.Fprintln(a.stderr, "Run leat --help for the list of commands.")
		} else if usage != nil {
			fmt.Fprintf(a.stderr, "Run leat %s --help for its flags and arguments.\n", usage.Context.Selected().Name)
		}
		return exitUsage
	}
	if err := k.Run(); err != nil {
		return a.fail(err)
	}
	return 0
}

// fail prints an error, one line for each joined error, and returns the exit status. Control characters are removed,
// because an error may contain the response of a server.
func (a *app) fail(err error) int {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(a.stderr, "leat: %s\n", console.Clean(strings.TrimPrefix(line, "leat: ")))
	}
	switch {
	case errors.Is(err, config.ErrInvalid), errors.Is(err, errUsage):
		return exitUsage
	case errors.Is(err, errCut):
		return exitCut
	}
	return exitError
}

// errUsage is wrapped by errors in the command line.
var errUsage = errors.New("usage")

// kindsHelp lists the kinds of agents with their targets for the help texts, such as "demo, exec:COMMAND".
func (a *app) kindsHelp() string {
	names := make([]string, len(a.kinds))
	for i, k := range a.kinds {
		names[i] = k.Name
		if k.Target != "" {
			names[i] += ":" + k.Target
		}
	}
	return strings.Join(names, ", ")
}
