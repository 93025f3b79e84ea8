package config

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/leat-dev/leat/gateway"
	"github.com/leat-dev/leat/journal"
)

// Config is all that can be set. Every leaf is a key of the file and an environment variable, whose name is LEAT_ and
// the key's path in capitals; leat.example.yaml describes them.
type Config struct {
	Listen         []string `yaml:"listen"`
	Data           string   `yaml:"data"`
	Token          string   `yaml:"token" env:"LEAT_API_TOKEN ELIZA_API_TOKEN"`
	AllowedOrigins []string `yaml:"allowed_origins"`
	Hosts          []string `yaml:"hosts"`

	Agents       Agents   `yaml:"agents"`
	DefaultAgent string   `yaml:"default_agent"`
	Silence      Duration `yaml:"silence"`
	WaitLimit    Duration `yaml:"wait_limit"`
	Lease        Duration `yaml:"lease"`
	Drain        Duration `yaml:"drain"`

	Sync           string   `yaml:"sync"`
	TraceRetention Duration `yaml:"trace_retention"`

	Limits Limits `yaml:"limits"`
	Log    Log    `yaml:"log"`
}

// Limits bound what a client may ask for.
type Limits struct {
	Message     Size `yaml:"message"`
	Queued      int  `yaml:"queued"`
	History     int  `yaml:"history"`
	Connections int  `yaml:"connections"`
}

// Log says what is logged, and how.
type Log struct {
	Level  string `yaml:"level"`
	Format string `yaml:"format"`
}

// The values of the keys that are words.
const (
	SyncFull   = "full"   // a commit is on the disk before anybody sees it
	SyncNormal = "normal" // a power cut may take back the last commits

	FormatAuto = "auto" // text on a terminal, else JSON
	FormatText = "text"
	FormatJSON = "json"
)

// DefaultListen is the address that the gateway's ancestors and their clients use.
const DefaultListen = "127.0.0.1:31337"

// DefaultConnections is that of the server.
const DefaultConnections = 20_000

// Default is the configuration of a gateway that was told nothing. Data is filled in by [Config.Check].
func Default() Config {
	return Config{
		Listen:         []string{DefaultListen},
		Silence:        Duration(gateway.DefaultSilence),
		WaitLimit:      Duration(gateway.DefaultWaitLimit),
		Lease:          Duration(gateway.DefaultLease),
		Drain:          Duration(gateway.DefaultDrain),
		Sync:           SyncFull,
		TraceRetention: Duration(journal.DefaultTraceRetention),
		Limits: Limits{
			Message: gateway.DefaultMaxMessage, Queued: gateway.DefaultMaxQueued, History: gateway.DefaultHistory,
			Connections: DefaultConnections,
		},
		Log: Log{Level: "info", Format: FormatAuto},
	}
}

// Load returns the defaults, changed by the file at path (none where it is empty) and then by the environment, which
// lookup reads as os.LookupEnv does. Flags and Check are the caller's.
func Load(path string, lookup func(string) (string, bool)) (Config, error) {
	c := Default()
	if path != "" {
		b, err := os.ReadFile(path)
		if err != nil {
			return c, fmt.Errorf("read config: %w", err)
		}
		if err := c.Parse(b); err != nil {
			return c, fmt.Errorf("%s: %w", path, err)
		}
	}
	return c, c.environment(lookup)
}

// Parse changes the configuration by what a file says.
func (c *Config) Parse(b []byte) error {
	// Errors are told without the source, which may hold a secret.
	invalid := func(err error) error { return fmt.Errorf("%w: %s", ErrInvalid, yaml.FormatError(err, false, false)) }
	f, err := parser.ParseBytes(b, 0)
	if err != nil {
		return invalid(err)
	}
	if len(f.Docs) > 1 {
		return fmt.Errorf("%w: the file holds more than one document", ErrInvalid)
	}
	if len(f.Docs) == 0 || f.Docs[0].Body == nil || f.Docs[0].Body.Type() == ast.NullType || f.Docs[0].Body.Type() == ast.CommentType {
		return nil // an empty file, or comments only
	}
	if err := yaml.NodeToValue(f.Docs[0].Body, c, yaml.Strict()); err != nil {
		return invalid(err)
	}
	return nil
}

// DataDir returns where a gateway keeps its data if it isn't told: the folder of the system for the data of one user's
// programs, so that it does not depend on where the gateway is started.
func DataDir(getenv func(string) string) (string, error) {
	switch runtime.GOOS {
	case "windows":
		if dir := getenv("LocalAppData"); dir != "" {
			return filepath.Join(dir, "leat"), nil
		}
	case "darwin":
		if home := getenv("HOME"); home != "" {
			return filepath.Join(home, "Library", "Application Support", "leat"), nil
		}
	default:
		if dir := getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
			return filepath.Join(dir, "leat"), nil
		}
		if home := getenv("HOME"); home != "" {
			return filepath.Join(home, ".local", "share", "leat"), nil
		}
	}
	return "", fmt.Errorf("%w: data: this account has no home folder; say where the data goes", ErrInvalid)
}

// silenceOf is the limit as the gateway takes it: 0 in a configuration is no limit.
func silenceOf(d Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return time.Duration(d)
}
