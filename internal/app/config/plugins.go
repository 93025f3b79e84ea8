package config

import (
	"github.com/leat-dev/leat/internal/base/process"
)

// Plugins configures plugins that are installed while the gateway runs.
type Plugins struct {
	Enabled bool `yaml:"enabled"`
	// Env lists the environment variables of the gateway that plugins may request.
	Env []string `yaml:"env"`
	// AllowPrivate allows archives from addresses of this machine and its network.
	AllowPrivate bool `yaml:"allow_private"`
}

// check refuses names that can't be names of variables, and those that begin with LEAT_ or ELIZA_: they may contain
// the gateway's own secrets, which no plugin may get.
func (p *Plugins) check(bad reporter) {
	if err := process.CheckEnv(p.Env); err != nil {
		bad("plugins.env", "%w", err)
	}
}
