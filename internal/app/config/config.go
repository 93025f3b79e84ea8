package config

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/attachments"
	"github.com/leat-dev/leat/internal/service/capture"
	"github.com/leat-dev/leat/internal/service/terminal"
	"github.com/leat-dev/leat/internal/service/usage"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Config is the configuration of a gateway. Each leaf is a key of the file and an environment variable, whose name is LEAT_ and the
// key's path in capitals unless the tag env names others. leat.example.yaml describes all keys. A reload applies keys with the tag
// live; all others wait for the next start.
type Config struct {
	Listen         []string `yaml:"listen"`
	Data           string   `yaml:"data"`
	Token          string   `yaml:"token" env:"LEAT_API_TOKEN ELIZA_API_TOKEN"`
	AllowedOrigins []string `yaml:"allowed_origins" live:"yes"`
	AppOrigins     bool     `yaml:"app_origins" live:"yes"`
	Hosts          []string `yaml:"hosts" live:"yes"`
	PublicURL      string   `yaml:"public_url"`
	BasePath       string   `yaml:"base_path"`
	TrustedProxies []string `yaml:"trusted_proxies"`
	TLS            TLS      `yaml:"tls"`
	Users          Users    `yaml:"users"`
	Eliza          Eliza    `yaml:"eliza"`

	Agents       Agents   `yaml:"agents" live:"yes"`
	DefaultAgent string   `yaml:"default_agent"`
	Silence      Duration `yaml:"silence" live:"yes"`
	TurnLimit    Duration `yaml:"turn_limit" live:"yes"`
	WaitLimit    Duration `yaml:"wait_limit" live:"yes"`
	Lease        Duration `yaml:"lease" live:"yes"`
	Drain        Duration `yaml:"drain" live:"yes"`

	Sync           string   `yaml:"sync"`
	TraceRetention Duration `yaml:"trace_retention"`
	Record         Record   `yaml:"record"`

	Webhooks       Webhooks  `yaml:"webhooks"`
	Retention      Retention `yaml:"retention" live:"yes"`
	AuditRetention Duration  `yaml:"audit_retention" live:"yes"`
	UsageRetention Duration  `yaml:"usage_retention"`
	Prices         Prices    `yaml:"prices" live:"yes"`

	Terminal Terminal `yaml:"terminal"`
	Outputs  Outputs  `yaml:"outputs"`
	Plugins  Plugins  `yaml:"plugins"`
	Channels Channels `yaml:"channels" live:"yes"`
	Voice    Voice    `yaml:"voice"`
	Files    Files    `yaml:"files"`

	Limits Limits `yaml:"limits"`
	Log    Log    `yaml:"log"`

	// sources are where keys got their values, for errors: such as leat.yaml:7, LEAT_DATA or --data. Keys with defaults are missing.
	sources map[string]string
}

// Limits limit requests and resources.
type Limits struct {
	Message      Size `yaml:"message" live:"yes"`
	Queued       int  `yaml:"queued" live:"yes"`
	History      int  `yaml:"history" live:"yes"`
	HistoryBytes Size `yaml:"history_bytes" live:"yes"`
	Connections  int  `yaml:"connections"`
	File         Size `yaml:"file"`

	User   quotas `yaml:"user"`
	Tenant quotas `yaml:"tenant"`
}

// Log configures the log, which is written to standard error.
type Log struct {
	Level  string `yaml:"level" live:"yes"`
	Format string `yaml:"format"`
	// Content enables logging the texts of messages at level debug.
	Content bool `yaml:"content"`
}

// The values of the keys sync and log.format.
const (
	syncFull   = "full"   // a commit is on the disk before anyone sees it
	syncNormal = "normal" // a power cut may lose the last commits

	FormatAuto = "auto" // text on a terminal, otherwise JSON
	formatText = "text"
	FormatJSON = "json"
)

// DefaultListen is the address that existing clients of Eliza use.
const DefaultListen = "127.0.0.1:31337"

// DefaultConnections is the default of limits.connections, the number of connections that may be open at the same
// time.
const DefaultConnections = 20_000

// Default returns the default configuration. It has no agents and no data folder; [Config.Check] fills in the folder.
// Defaults that another package enforces are its constants, so that they can't differ.
func Default() Config {
	return Config{
		Listen:         []string{DefaultListen},
		Silence:        Duration(gateway.DefaultSilence),
		TurnLimit:      Duration(gateway.DefaultTurnLimit),
		WaitLimit:      Duration(gateway.DefaultWaitLimit),
		Lease:          Duration(gateway.DefaultLease),
		Drain:          Duration(gateway.DefaultDrain),
		Sync:           syncFull,
		TraceRetention: Duration(journal.DefaultTraceRetention),
		Record:         Record{Enabled: true, Retention: Duration(capture.DefaultRetention), Size: capture.DefaultSize},
		Webhooks:       Webhooks{},
		AuditRetention: Duration(defaultAuditRetention),
		UsageRetention: Duration(usage.DefaultRetention),
		Prices:         Prices{},
		Limits: Limits{
			Message: gateway.DefaultMaxMessage, Queued: gateway.DefaultMaxQueued, History: gateway.DefaultHistory, HistoryBytes: gateway.DefaultHistoryBytes,
			Connections: DefaultConnections, File: attachments.DefaultMaxFile,
		},
		Users:    Users{SubjectClaim: "sub"},
		Outputs:  defaultOutputs(),
		Terminal: Terminal{MaxDuration: Duration(terminal.DefaultMaxDuration), Concurrent: terminal.DefaultMaxRuns},
		Voice:    Voice{Interrupt: interruptTurn},
		Log:      Log{Level: "info", Format: FormatAuto},
	}
}

// Load returns the defaults, overridden by the file at path and then by the environment. If path is empty, no file is
// read. lookup reads an environment variable, as os.LookupEnv does. The caller applies flags and then calls
// [Config.Check].
//
// Values are parsed but not checked: a value from the file may be wrong as long as the environment or a flag
// overrides it.
func Load(path string, lookup func(string) (string, bool)) (Config, error) {
	c := Default()
	if path != "" {
		b, err := os.ReadFile(path)
		if err != nil {
			return c, fmt.Errorf("read config: %w", err)
		}
		if err := c.Parse(path, b); err != nil {
			return c, err
		}
	}
	return c, c.environment(lookup)
}

// DataDir returns the default data folder: the system's folder for application data of the current user, so that it
// does not depend on the folder in which the gateway is started. These are %LocalAppData% on Windows,
// ~/Library/Application Support on macOS, and on other systems $XDG_DATA_HOME or else ~/.local/share, each with a
// folder leat in it. DataDir doesn't create it.
func DataDir(getenv func(string) string) (string, error) {
	dir, home := "", getenv("HOME")
	switch {
	case runtime.GOOS == "windows":
		dir = getenv("LocalAppData")
	case runtime.GOOS != "darwin" && filepath.IsAbs(getenv("XDG_DATA_HOME")):
		dir = getenv("XDG_DATA_HOME") // a relative path is invalid by the XDG specification
	case home == "":
	case runtime.GOOS == "darwin":
		dir = filepath.Join(home, "Library", "Application Support")
	default:
		dir = filepath.Join(home, ".local", "share")
	}
	if dir == "" {
		return "", fmt.Errorf("%w: data: this account has no home folder; set the data folder with --data DIR", ErrInvalid)
	}
	return filepath.Join(dir, "leat"), nil
}

// optional returns a limit in the gateway's form. In a configuration 0 means unlimited. The gateway uses a negative
// value for that, because its zero value means the default.
func optional(d Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return time.Duration(d)
}
