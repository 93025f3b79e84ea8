package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lmittmann/tint"
	"github.com/mattn/go-isatty"

	"github.com/leat-dev/leat/internal/app/config"
)

// interruptible returns a context that is done when the user presses Ctrl-C or the system asks the program to end. It
// is for commands whose requests may take long: they end in order, for example by removing an incomplete file,
// instead of being killed by the signal.
func (a *app) interruptible() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(a.ctx, os.Interrupt, syscall.SIGTERM)
}

// saving has the flags of commands that write a file.
type saving struct {
	Output string `short:"o" help:"File to create; it must not exist. Default: standard output." placeholder:"FILE"`
	JSON   bool   `name:"json" help:"With --output: print the file and its size as JSON."`
}

// savedFile is what --json prints about a new file.
type savedFile struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

// save passes a writer of a new file to write, and then prints the file's size, followed by hint. If file is empty,
// write gets standard output. command is the prefix of an error.
//
// The file is created exclusively, so that no command overwrites an earlier export or backup, and only its user can
// read it. If write fails, the incomplete file is removed, so that it can't be mistaken for a complete one.
func (s saving) save(a *app, command, hint string, write func(io.Writer) (int64, error)) error {
	if s.Output == "" {
		if s.JSON {
			return fmt.Errorf("%w: --json needs --output", errUsage)
		}
		_, err := write(a.terminalSafe(a.stdout))
		return err
	}
	f, err := os.OpenFile(s.Output, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	n, err := write(f)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(s.Output))
	}
	if s.JSON {
		return a.printJSON(savedFile{s.Output, n}, nil)
	}
	fmt.Fprintf(a.stderr, "%s: %d bytes%s\n", s.Output, n, hint)
	return nil
}

// table returns a writer that aligns the cells of lines, which are separated by tabs. The caller flushes it.
func (a *app) table() *tabwriter.Writer { return tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0) }

// printJSON prints a value as one line of JSON, unless err is an error, which it returns.
func (a *app) printJSON(v any, err error) error {
	if err != nil {
		return err
	}
	return json.NewEncoder(a.stdout).Encode(v)
}

// printIndented prints a value as JSON for people to read.
func printIndented(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

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

// terminal describes an output. The zero value is a file or a pipe.
type terminal struct {
	is     bool // it is a terminal
	colour bool
}

// terminal returns what w is. Colours are off if NO_COLOR is set (no-color.org) or TERM is dumb; control characters
// in text are escaped nevertheless.
func (a *app) terminal(w io.Writer) terminal {
	f, ok := w.(*os.File)
	if !ok || !isTerminal(f) {
		return terminal{}
	}
	return terminal{is: true, colour: a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"}
}

// isTerminal reports whether a file is a terminal, on all systems.
func isTerminal(f *os.File) bool { return isatty.IsTerminal(f.Fd()) }

// The styles, as parameters of the escape sequence SGR (ECMA-48).
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// style returns the text in a style if the terminal supports colours. The style ends with the text, so texts with
// styles can be joined.
func (t terminal) style(style, text string) string {
	if !t.colour || style == "" || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// escaper escapes control characters, which a terminal would execute: text of an agent could change the window's
// title, hide other output or, in some terminals, type commands. It writes them as JSON does (\u001b), so that JSON
// stays valid. Line feeds and tabs remain. A UTF-8 character may be split over two writes, so an incomplete one at
// the end waits for the next write.
type escaper struct {
	w       io.Writer
	partial []byte // an incomplete character at the end of the last write
}

// terminalSafe returns a writer to w that escapes control characters if w is a terminal. Otherwise it returns w, so
// files and pipes get the exact bytes. Every command that prints data of agents or users passes its output through
// terminalSafe or [console.Clean].
func (a *app) terminalSafe(w io.Writer) io.Writer {
	if !a.terminal(w).is {
		return w
	}
	return &escaper{w: w}
}

// Write implements [io.Writer].
func (e *escaper) Write(p []byte) (int, error) {
	text := append(e.partial, p...)
	escaped := make([]byte, 0, len(text))
	for len(text) > 0 && utf8.FullRune(text) {
		r, size := utf8.DecodeRune(text)
		switch {
		case r != '\n' && r != '\t' && unicode.IsControl(r), r == utf8.RuneError && size == 1:
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		default:
			escaped = append(escaped, text[:size]...)
		}
		text = text[size:]
	}
	e.partial = append([]byte(nil), text...)
	if _, err := e.w.Write(escaped); err != nil {
		return 0, err
	}
	return len(p), nil
}
