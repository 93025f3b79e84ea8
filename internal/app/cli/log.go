package cli

import (
	"log/slog"
	"regexp"
	"time"

	"github.com/lmittmann/tint"

	"github.com/leat-dev/leat/internal/app/config"
)

// logger returns a logger to standard error. It writes coloured text to a terminal, otherwise JSON. Its level follows
// a.level, which a reload changes while the logger is in use. Every attribute passes through [redact].
func (a *app) logger(c config.Log) (*slog.Logger, error) {
	if err := a.level.UnmarshalText([]byte(c.Level)); err != nil {
		return nil, err
	}
	t := a.terminal(a.stderr)
	if c.Format == config.FormatJSON || c.Format == config.FormatAuto && !t.is {
		return slog.New(slog.NewJSONHandler(a.stderr, &slog.HandlerOptions{Level: &a.level, ReplaceAttr: redact})), nil
	}
	return slog.New(tint.NewTextHandler(a.stderr, &tint.Options{Level: &a.level, TimeFormat: time.TimeOnly, NoColor: !t.colour, ReplaceAttr: redact})), nil
}

var (
	// secretName matches the names of attributes whose values are secret.
	secretName = regexp.MustCompile(`(?i)^(.*[-_])?(token|authorization|secret|password|cookie|api[-_]?key)$`)
	// secretText matches secrets in headers and URLs.
	secretText = regexp.MustCompile(`(?i)(\bBearer\s+|[?&](?:token|access_token|api_key|key|secret|password)=)[^\s&"'<>]+`)
)

// redact masks secrets in log attributes: the whole value of an attribute with the name of a secret, and tokens
// within texts and errors, such as the URL in the error of an HTTP client. No code should log a secret; redact is the
// last line of defence.
func redact(_ []string, a slog.Attr) slog.Attr {
	if secretName.MatchString(a.Key) {
		return slog.String(a.Key, "***")
	}
	// Values of other types, such as numbers and durations, can't contain a secret.
	text := ""
	switch v := a.Value.Any().(type) {
	case string:
		text = v
	case error:
		text = v.Error()
	default:
		return a
	}
	if secretText.MatchString(text) {
		return slog.String(a.Key, secretText.ReplaceAllString(text, "${1}***"))
	}
	return a
}
