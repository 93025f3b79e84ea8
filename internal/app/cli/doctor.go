package cli

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/app/doctor"
)

// doctorCmd looks at what a gateway stands on, as serve with the same flags would find it.
type doctorCmd struct {
	settings
	URL  string `name:"url" help:"Where readers reach the gateway, to see what lies in between. Default: public_url, else where it listens." placeholder:"URL"`
	JSON bool   `name:"json" help:"As JSON."`
}

// errUnhealthy says that a check of doctor failed.
var errUnhealthy = errors.New("not all is well")

func (c *doctorCmd) Run(a *app) error {
	var all []doctor.Finding
	cfg, err := c.load(a)
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			all = append(all, doctor.Finding{Check: "config", Level: doctor.Fail, Message: line, Fix: "leat.example.yaml describes all keys"})
		}
	} else {
		all = append(c.config(a, &cfg), doctor.Disk(cfg.Data, "leat.lock")...)
		all = append(all, doctor.Store(a.ctx, cfg.Data, "leat.lock")...)
		if dir := cfg.Files.Workspace; dir != "" {
			all = append(all, doctor.Workspace(dir)...)
		}
		all = append(all, c.agents(a, &cfg)...)
		all = append(all, c.reach(a, &cfg)...)
	}
	if err := c.print(a, all); err != nil {
		return err
	}
	failed := 0
	for _, f := range all {
		if f.Level == doctor.Fail {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%w: %d of %d checks failed", errUnhealthy, failed, len(all))
	}
	return nil
}

// config tells what is allowed, and yet not wise.
func (c *doctorCmd) config(a *app, cfg *config.Config) []doctor.Finding {
	warn := func(fix, format string, args ...any) doctor.Finding {
		return doctor.Finding{Check: "config", Level: doctor.Warn, Message: fmt.Sprintf(format, args...), Fix: fix}
	}
	all := []doctor.Finding{{Check: "config", Level: doctor.OK, Message: "the configuration is right"}}
	if c.Config != "" {
		inFile := false
		if file, err := config.Load(c.Config, func(string) (string, bool) { return "", false }); err == nil {
			inFile = file.Token != ""
		}
		if inFile {
			all = append(all, warn("give it by LEAT_API_TOKEN", "the token stands in %s", c.Config))
		}
		if info, err := os.Stat(c.Config); err == nil && runtime.GOOS != "windows" && inFile && info.Mode().Perm()&0o077 != 0 {
			all = append(all, doctor.Finding{
				Check: "config", Level: doctor.Fail, Fix: "chmod 600 " + c.Config,
				Message: fmt.Sprintf("%s holds the token and can be read by others on this machine (%v)", c.Config, info.Mode().Perm()),
			})
		}
	}
	if c.Token != "" && a.getenv("LEAT_API_TOKEN") != c.Token {
		all = append(all, warn("give it by LEAT_API_TOKEN", "the token stands on the command line, where every list of processes shows it"))
	}
	if n := len(cfg.Token); n > 0 && n < 16 {
		all = append(all, warn("openssl rand -hex 32 makes one", "the token has %d characters: it can be guessed", n))
	}
	public, _ := cfg.Public() // which was checked
	for _, address := range cfg.Listen {
		host, _, err := net.SplitHostPort(address)
		if err != nil || config.Loopback(host) || cfg.TLS.On() || len(cfg.TrustedProxies) > 0 || public != nil && public.Scheme == "https" {
			continue
		}
		all = append(all, warn("set tls, or stand behind a proxy that does, and name it in trusted_proxies", "%s is reached from outside without TLS: tokens can be read on the way", address))
	}
	for _, list := range []struct {
		key   string
		items []string
	}{{"hosts", cfg.Hosts}, {"allowed_origins", cfg.AllowedOrigins}} {
		for _, item := range list.items {
			if item == "*" {
				all = append(all, warn("name those that you know", "%s allows all", list.key))
			}
		}
	}
	if cfg.Log.Content {
		all = append(all, warn("set log.content: false once you have seen enough", "the log holds what people and agents say"))
	}
	return all
}

// agents makes each agent and asks it whether it is there.
func (c *doctorCmd) agents(a *app, cfg *config.Config) (all []doctor.Finding) {
	for _, s := range cfg.Agents {
		f := doctor.Finding{Check: "agent", Level: doctor.OK, Message: s.Name + " is there"}
		if err := a.checkAgent(a.ctx, s); err != nil && !errors.Is(err, agent.ErrNoCheck) {
			f.Level, f.Message, f.Fix = doctor.Fail, s.Name+": "+agent.OneLine(err), "start it, or mend its line under agents"
		}
		all = append(all, f)
	}
	return all
}

// reach looks at the gateway's addresses, and at what lies between it and its readers.
func (c *doctorCmd) reach(a *app, cfg *config.Config) (all []doctor.Finding) {
	// Connections are not kept, so that each check is a new reader's. HTTP/2 is taken where it is offered, as browsers do.
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, DisableCompression: true, ForceAttemptHTTP2: true}
	client := &http.Client{Transport: transport}
	// By its address on this machine the gateway is reached under another name than its certificate has.
	near := transport.Clone()
	near.Proxy, near.TLSClientConfig = nil, &tls.Config{InsecureSkipVerify: true}
	here := &http.Client{Transport: near}
	base, _ := cfg.Base() // which was checked
	local := ""
	for _, address := range cfg.Listen {
		host, port, err := net.SplitHostPort(address)
		if err != nil || strings.HasPrefix(address, config.UnixPrefix) {
			continue // a Unix socket; serve tells whether it can be opened
		}
		if port == "0" {
			continue // any that is free
		}
		if host == "" || net.ParseIP(host).IsUnspecified() {
			host = "127.0.0.1"
		}
		scheme := "http"
		if cfg.TLS.On() {
			scheme = "https"
		}
		url := scheme + "://" + net.JoinHostPort(host, port) + base
		found, ours := doctor.Port(a.ctx, here, address, url)
		if all = append(all, found...); ours && local == "" {
			local = url
		}
	}
	url := strings.TrimRight(c.URL, "/")
	if url == "" {
		url = strings.TrimRight(cfg.PublicURL, "/")
	}
	outside := url != ""
	if !outside {
		url, client = local, here
	}
	if url == "" {
		return append(all, doctor.Finding{Check: "stream", Level: doctor.OK, Message: "not looked at: no gateway runs here; start it, or name one with --url"})
	}
	if outside {
		all = append(all, doctor.Clock(a.ctx, client, url)...)
	}
	all = append(all, doctor.Damaged(a.ctx, client, url, cfg.Token)...)
	all = append(all, doctor.Stream(a.ctx, client, url, cfg.Token)...)
	return append(all, doctor.Socket(a.ctx, client, url, cfg.Token)...)
}

func (c *doctorCmd) print(a *app, all []doctor.Finding) error {
	if c.JSON {
		e := json.NewEncoder(a.out)
		e.SetIndent("", "  ")
		return e.Encode(map[string]any{"findings": all})
	}
	t := a.terminal(a.out)
	colour := map[doctor.Level]string{doctor.OK: green, doctor.Warn: yellow, doctor.Fail: red}
	for _, f := range all {
		if _, err := fmt.Fprintf(a.out, "%s %-7s %s\n", t.style(colour[f.Level], fmt.Sprintf("%-4s", f.Level)), f.Check, f.Message); err != nil {
			return err
		}
		if f.Fix != "" {
			if _, err := fmt.Fprintf(a.out, "             → %s\n", f.Fix); err != nil {
				return err
			}
		}
	}
	return nil
}
