package config

import (
	"github.com/leat-dev/leat/internal/base/process"
)

// Plugins says whether plugins may be installed, and what they may have.
type Plugins struct {
	Enabled bool `yaml:"enabled"`
	// Env names the variables of the gateway's environment that plugins may ask for.
	Env          []string `yaml:"env"`
	AllowPrivate bool     `yaml:"allow_private"`
}

func (p *Plugins) check(bad func(key, format string, args ...any)) {
	if err := process.CheckEnv(p.Env); err != nil {
		bad("plugins.env", "%w", err)
	}
}
