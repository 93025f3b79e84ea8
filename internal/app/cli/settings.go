// Flags, environment and file as one configuration, and the commands that check and print it.

package cli

import (
	"fmt"
	"strings"

	"github.com/leat-dev/leat/agent/llm"
	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/app/serve"
)

// settings has the flags that override the configuration. All other settings come from the environment and the file.
// The flags are strings, also for durations, so that their values are parsed and checked in the same way as in the
// file.
type settings struct {
	Config       string   `help:"Configuration file; leat.example.yaml describes it. SIGHUP makes serve reload it." env:"LEAT_CONFIG" placeholder:"FILE"`
	Listen       []string `help:"Address to listen on; may be repeated. Default: 127.0.0.1:31337." placeholder:"ADDR" sep:"none"`
	Data         string   `help:"Data folder. Default: leat in the user's data folder." placeholder:"DIR"`
	Token        string   `help:"API token that clients must send. Prefer LEAT_API_TOKEN, which process lists don't show." placeholder:"T"`
	Agent        []string `help:"Agent, as [name=]kind[:target][?key=value...], such as demo, anthropic:claude-sonnet-5, 'exec:python3 agent.py', http://127.0.0.1:8000/ or replay:FILE?dialect=openclaw; may be repeated. Kinds: ${kinds}." placeholder:"SPEC" sep:"none"`
	Channel      []string `help:"Channel, as [name=]kind[?key=value...], such as telegram; may be repeated. Its token is best in the environment. Kinds: ${channels}." placeholder:"SPEC" sep:"none"`
	DefaultAgent string   `help:"Agent of conversations that name none. Default: the first." placeholder:"NAME"`
	Drain        string   `help:"How long running turns may continue after the gateway was asked to stop." placeholder:"DURATION"`
	LogLevel     string   `help:"debug, info, warn or error." placeholder:"LEVEL"`
	LogFormat    string   `help:"auto, text or json." placeholder:"FORMAT"`
}

// load loads and checks the configuration. If no agent is configured, it adds one for each provider whose key is in
// the environment, or else the demo, so that leat serve works without a configuration.
//
// A flag overrides the environment, and the environment the file. The agents of --agent replace all agents of the
// file. load may be called again to reload the configuration: it depends on nothing but the flags, the environment
// and the file.
func (s *settings) load(a *app) (config.Config, error) {
	c, err := config.Load(s.Config, a.lookup)
	if err != nil {
		return c, err
	}
	if len(s.Listen) > 0 {
		c.Listen = s.Listen
		c.SetSource("listen", "--listen")
	}
	if len(s.Agent) > 0 {
		if err := c.Agents.Parse(s.Agent); err != nil {
			return c, fmt.Errorf("%w: --agent: %w", config.ErrInvalid, err)
		}
		c.SetSource("agents", "--agent")
	}
	if len(s.Channel) > 0 {
		if err := c.Channels.Parse(s.Channel); err != nil {
			return c, fmt.Errorf("%w: --channel: %w", config.ErrInvalid, err)
		}
		c.SetSource("channels", "--channel")
	}
	// Agents from the environment are only for users who configure none: otherwise a key that is set for another
	// program would add an agent to a gateway.
	if len(c.Agents) == 0 {
		c.Agents = llm.FromEnvironment(a.getenv)
	}
	if len(c.Agents) == 0 {
		if err := c.Agents.Parse([]string{"demo"}); err != nil {
			return c, err
		}
	}
	values := map[string]string{
		"data": s.Data, "token": s.Token, "default_agent": s.DefaultAgent, "drain": s.Drain, "log.level": s.LogLevel, "log.format": s.LogFormat,
	}
	for _, k := range c.Keys() {
		if v := values[k.Path]; v != "" {
			if err := k.Set(v); err != nil {
				return c, fmt.Errorf("--%s: %w", flagName.Replace(k.Path), err)
			}
			c.SetSource(k.Path, "--"+flagName.Replace(k.Path))
		}
	}
	return c, c.Check(a.kinds, a.getenv)
}

// flagName turns the path of a key into the name of its flag: log.level is --log-level.
var flagName = strings.NewReplacer("_", "-", ".", "-")

type configCmd struct {
	Check configCheckCmd `cmd:"" help:"Check the configuration."`
	Print configPrintCmd `cmd:"" help:"Print the configuration that serve would use, from all sources; secrets are masked."`
}

// configCheckCmd checks the configuration as serve would, but opens neither the data folder nor an address. So it can
// run while a gateway with the same configuration is running, for example before a reload.
type configCheckCmd struct {
	settings
	JSON bool `name:"json" help:"Print the warnings as JSON."`
}

// Run checks everything that can be checked without starting a gateway. Warnings don't make the check fail: the configuration works
// as it is.
func (c *configCheckCmd) Run(a *app) error {
	cfg, err := c.load(a)
	if err != nil {
		return err
	}
	if err := serve.Check(&cfg, a.kinds); err != nil {
		return err
	}
	warnings := []string{}
	for _, s := range cfg.Agents {
		warnings = append(warnings, a.kinds.Warnings(s)...)
	}
	if c.JSON {
		return a.printJSON(map[string][]string{"warnings": warnings}, nil)
	}
	for _, warning := range warnings {
		fmt.Fprintln(a.stdout, "Warning: "+warning+".")
	}
	fmt.Fprintln(a.stdout, "The configuration is valid.")
	return nil
}

// configPrintCmd prints the configuration that serve would use, as YAML or JSON. The output is a valid configuration
// file, except for the masked secrets.
type configPrintCmd struct {
	settings
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints the configuration with all defaults, flags and variables, as a file that could be used in place of them apart from its
// masked secrets.
func (c *configPrintCmd) Run(a *app) error {
	cfg, err := c.load(a)
	if err != nil {
		return err
	}
	// Both forms mask the secrets.
	print := cfg.YAML
	if c.JSON {
		print = cfg.JSON
	}
	b, err := print(a.kinds)
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(b)
	return err
}
