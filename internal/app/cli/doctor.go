// The command doctor: it prints the results of the checks in package doctor.

package cli

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/app/doctor"
)

// doctorCmd checks the environment of a gateway. It takes the flags of serve, so that it checks the gateway that
// serve would start with them. Package doctor has the checks; this file decides which of them apply.
type doctorCmd struct {
	settings
	URL  string `name:"url" help:"URL that readers use, to check the network and proxies in between. Default: public_url, or the address that the gateway listens on." placeholder:"URL"`
	JSON bool   `name:"json" help:"Print JSON."`
}

// errUnhealthy is the error if a check failed.
var errUnhealthy = errors.New("checks failed")

// Run prints the findings of all checks. If the configuration is invalid, its errors are the only findings, since the
// other checks depend on it. Warnings don't fail the command; the exit status is 1 if a check failed.
func (c *doctorCmd) Run(a *app) error {
	// The checks run in the order in which a user would solve their problems: the configuration first, the network
	// last.
	var findings []doctor.Finding
	cfg, err := c.load(a)
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			findings = append(findings, doctor.Finding{Check: "config", Level: doctor.Fail, Message: line, Fix: "leat.example.yaml describes all keys"})
		}
	} else {
		findings = append(c.config(a, &cfg), doctor.Disk(cfg.Data, "leat.lock")...)
		findings = append(findings, doctor.Store(a.ctx, cfg.Data, "leat.lock")...)
		if dir := cfg.Files.Workspace; dir != "" {
			findings = append(findings, doctor.Workspace(dir)...)
		}
		if path := cfg.Voice.VAD; path != "" {
			findings = append(findings, doctor.Detector(path)...)
		}
		findings = append(findings, c.agents(a, &cfg)...)
		findings = append(findings, c.reach(a, &cfg)...)
	}
	if err := c.print(a, findings); err != nil {
		return err
	}
	failed := 0
	for _, f := range findings {
		if f.Level == doctor.Fail {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d %w", failed, len(findings), errUnhealthy)
	}
	return nil
}

// config warns about settings that are valid but unsafe: a token in a file or on a command line, a token that is
// short, an address without TLS, wildcards, and a log with texts. The file is loaded once more without the
// environment, to find out whether the token is really in the file.
func (c *doctorCmd) config(a *app, cfg *config.Config) []doctor.Finding {
	warn := func(fix, format string, args ...any) doctor.Finding {
		return doctor.Finding{Check: "config", Level: doctor.Warn, Message: fmt.Sprintf(format, args...), Fix: fix}
	}
	findings := []doctor.Finding{{Check: "config", Level: doctor.OK, Message: "the configuration is valid"}}
	if c.Config != "" {
		file, err := config.Load(c.Config, func(string) (string, bool) { return "", false })
		inFile := err == nil && file.Token != ""
		if inFile {
			findings = append(findings, warn("set it with LEAT_API_TOKEN", "the token is in %s", c.Config))
		}
		// A file that other users can read is worse than a token in a file: any of them could use the gateway as its
		// admin. Windows has access lists instead of modes.
		if info, err := os.Stat(c.Config); err == nil && runtime.GOOS != "windows" && inFile && info.Mode().Perm()&0o077 != 0 {
			findings = append(findings, doctor.Finding{
				Check: "config", Level: doctor.Fail, Fix: "chmod 600 " + c.Config,
				Message: fmt.Sprintf("%s contains the token and is readable by other users of this machine (%v)", c.Config, info.Mode().Perm()),
			})
		}
	}
	// The flag and the environment variable set the same field. Only a value that differs from the variable came from
	// the command line.
	if c.Token != "" && a.getenv("LEAT_API_TOKEN") != c.Token {
		findings = append(findings, warn("set it with LEAT_API_TOKEN", "the token is on the command line, where process lists show it"))
	}
	// A random token of 16 characters can't be guessed; a shorter one might be, and is often a word.
	if n := len(cfg.Token); n > 0 && n < 16 {
		findings = append(findings, warn("generate one with openssl rand -hex 32", "the token has only %d characters and can be guessed", n))
	}
	// A Unix socket has no port, so SplitHostPort fails, and the socket is skipped. A proxy in front of the gateway
	// shows in trusted_proxies or in a public URL with https; then TLS ends there.
	public, _ := cfg.Public() // load has checked it
	for _, address := range cfg.Listen {
		host, _, err := net.SplitHostPort(address)
		if err != nil || config.Loopback(host) || cfg.TLS.On() || len(cfg.TrustedProxies) > 0 || public != nil && public.Scheme == "https" {
			continue
		}
		findings = append(findings, warn("set tls, or use a proxy with TLS and list it in trusted_proxies", "%s is reachable from other machines without TLS, so tokens can be intercepted", address))
	}
	for _, list := range []struct {
		key   string
		items []string
	}{{"hosts", cfg.Hosts}, {"allowed_origins", cfg.AllowedOrigins}} {
		if slices.Contains(list.items, "*") {
			findings = append(findings, warn("list the ones you use", "%s allows all", list.key))
		}
	}
	if cfg.Log.Content {
		findings = append(findings, warn("set log.content: false when you have finished", "the log contains the texts of conversations"))
	}
	return findings
}

// agents makes each agent and checks that it answers. An agent of a kind without a check counts as working. Advice that several agents
// need is given once.
func (c *doctorCmd) agents(a *app, cfg *config.Config) (findings []doctor.Finding) {
	advised := map[string]bool{}
	for _, s := range cfg.Agents {
		f := doctor.Finding{Check: "agent", Level: doctor.OK, Message: s.Name + " answers"}
		if err := a.checkAgent(a.ctx, s); err != nil && !errors.Is(err, agent.ErrNoCheck) {
			f.Level, f.Message = doctor.Fail, s.Name+": "+agent.OneLine(err)
			// The error for a missing key says what to do.
			if advice := doctor.Advice(err); a.kinds.Missing(s) == nil && !advised[advice] {
				f.Fix, advised[advice] = advice, true
			}
		}
		findings = append(findings, f)
	}
	return findings
}

// reach checks the gateway's addresses, and the network between it and its readers.
//
// First each TCP address of the configuration is tried from this machine, without a proxy and without checking the
// certificate, which is for another name. Then the checks of the network run against the URL that readers use: --url,
// else public_url, else the first local address at which a gateway answered. Only a URL from outside can tell
// anything about proxies and clocks, so the clock is checked only with one.
func (c *doctorCmd) reach(a *app, cfg *config.Config) (findings []doctor.Finding) {
	// Each check uses a new connection, as a new reader would. HTTP/2 is used if it is offered, as browsers do.
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, DisableCompression: true, ForceAttemptHTTP2: true}
	client := &http.Client{Transport: transport}
	// The address on this machine is not the name in the gateway's certificate.
	near := transport.Clone()
	near.Proxy, near.TLSClientConfig = nil, &tls.Config{InsecureSkipVerify: true}
	onThisMachine := &http.Client{Transport: near}
	base, _ := cfg.Base() // load has checked it
	local := ""
	for _, address := range cfg.Listen {
		host, port, err := net.SplitHostPort(address)
		if err != nil || strings.HasPrefix(address, config.UnixPrefix) || port == "0" {
			continue // only serve can check a Unix socket; port 0 means any free port
		}
		if host == "" || net.ParseIP(host).IsUnspecified() {
			host = "127.0.0.1"
		}
		scheme := "http"
		if cfg.TLS.On() {
			scheme = "https"
		}
		url := scheme + "://" + net.JoinHostPort(host, port) + base
		result, isLeat := doctor.Port(a.ctx, onThisMachine, address, url)
		if findings = append(findings, result...); isLeat && local == "" {
			local = url
		}
	}
	url := cmp.Or(strings.TrimRight(c.URL, "/"), strings.TrimRight(cfg.PublicURL, "/"))
	// outside is true if the checks use the URL of readers, and false if all they can use is an address of this
	// machine.
	outside := url != ""
	if !outside {
		url, client = local, onThisMachine
	}
	if url == "" {
		return append(findings, doctor.Finding{Check: "stream", Level: doctor.OK, Message: "not checked, because no gateway is running here; start it, or set --url"})
	}
	if outside {
		findings = append(findings, doctor.Clock(a.ctx, client, url)...)
	}
	findings = append(findings, doctor.Damaged(a.ctx, client, url, cfg.Token)...)
	findings = append(findings, doctor.Stream(a.ctx, client, url, cfg.Token)...)
	return append(findings, doctor.Socket(a.ctx, client, url, cfg.Token)...)
}

// print prints the findings as JSON, or as lines with the recommended action below each problem.
func (c *doctorCmd) print(a *app, findings []doctor.Finding) error {
	if c.JSON {
		return printIndented(a.stdout, map[string]any{"findings": findings})
	}
	t := a.terminal(a.stdout)
	// The levels are padded to the width of the longest one, so that the messages are aligned; the arrow of a fix is
	// below them.
	colour := map[doctor.Level]string{doctor.OK: green, doctor.Warn: yellow, doctor.Fail: red}
	for _, f := range findings {
		if _, err := fmt.Fprintf(a.stdout, "%s %-7s %s\n", t.style(colour[f.Level], fmt.Sprintf("%-4s", f.Level)), f.Check, f.Message); err != nil {
			return err
		}
		if f.Fix != "" {
			if _, err := fmt.Fprintf(a.stdout, "             → %s\n", f.Fix); err != nil {
				return err
			}
		}
	}
	return nil
}
