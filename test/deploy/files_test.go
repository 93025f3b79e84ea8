package deploy

import (
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/app/config"
)

const docs = "../../docs/deploy/"

func file(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(docs + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The links of the page lead to existing files, and its settings are valid.
func TestReadme(t *testing.T) {
	text := file(t, "README.md")
	for _, m := range regexp.MustCompile(`\]\(([^)#]+)`).FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(docs + m[1]); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
	}
	files, err := os.ReadDir(docs)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Name() != "README.md" && !strings.Contains(text, "("+f.Name()+")") {
			t.Errorf("the page does not speak of %s", f.Name())
		}
	}
	settings := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(settings) < 2 {
		t.Fatalf("settings: %q", settings)
	}
	for _, m := range settings {
		c := config.Default()
		if err := c.Parse("leat.yaml", []byte(m[1])); err != nil {
			t.Errorf("%v\n%s", err, m[1])
		}
		c.Token = "t"
		if err := c.Check(agent.Kinds{}, func(string) string { return "/home/x" }); err != nil {
			t.Errorf("%v\n%s", err, m[1])
		}
	}
}

// instructions are those of a Dockerfile: its lines without comments, continued ones joined.
func instructions(text string) [][]string {
	var out [][]string
	text = regexp.MustCompile(`(?m)^\s*#.*\n`).ReplaceAllString(text, "")
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		if f := strings.Fields(line); len(f) > 0 {
			out = append(out, f)
		}
	}
	return out
}

// The image is one static program from scratch with certificates, not root's, with its data where the volume is.
func TestDockerfile(t *testing.T) {
	all := instructions(file(t, "Dockerfile"))
	last := 0
	for i, in := range all {
		if in[0] == "FROM" {
			last = i
		}
	}
	image := map[string][]string{}
	for _, in := range all[last:] {
		image[in[0]] = append(image[in[0]], strings.Join(in[1:], " "))
	}
	want := func(name, text string) {
		t.Helper()
		if !slices.ContainsFunc(image[name], func(s string) bool { return strings.Contains(s, text) }) {
			t.Errorf("%s %v, want one with %q", name, image[name], text)
		}
	}
	want("FROM", "scratch")
	want("COPY", "/etc/ssl/certs/ca-certificates.crt")
	want("COPY", "--chown=65532:65532 /out/data /data")
	want("USER", "65532:65532") // a number, so that Kubernetes can verify that it isn't root
	want("ENV", "LEAT_DATA=/data")
	want("VOLUME", "/data")
	want("ENTRYPOINT", `["/leat"]`) // no shell, which would keep the signal
	if len(image["RUN"]) > 0 {
		t.Errorf("RUN %v: the image has no shell", image["RUN"])
	}
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(mod))[1]
	if from := strings.Join(all[0], " "); from != "FROM golang:"+version+" AS build" {
		t.Errorf("%s; go.mod needs Go %s", from, version)
	}
	for _, env := range image["ENV"] {
		lookup := map[string]string{"LEAT_API_TOKEN": "t"}
		for pair := range strings.FieldsSeq(env) {
			name, value, _ := strings.Cut(pair, "=")
			lookup[name] = value
		}
		wantConfig(t, lookup)
	}
}

// wantConfig checks what Leat makes of an environment.
func wantConfig(t *testing.T, env map[string]string) config.Config {
	t.Helper()
	c, err := config.Load("", func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(agent.Kinds{}, func(string) string { return "" }); err != nil {
		t.Error(err)
	}
	known := map[string]bool{}
	for _, k := range c.Keys() {
		for _, name := range k.Env {
			known[name] = true
		}
	}
	for name := range env {
		if !known[name] {
			t.Errorf("%s sets nothing", name)
		}
	}
	return c
}

// manifest is what the test looks at of the Kubernetes objects.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		AccessModes []string `yaml:"accessModes"`
		Replicas    int
		Strategy    struct{ Type string }
		Ports       []struct {
			Port       int
			TargetPort string `yaml:"targetPort"`
		}
		Template struct {
			Spec struct {
				Grace   int `yaml:"terminationGracePeriodSeconds"`
				Context struct {
					NonRoot bool `yaml:"runAsNonRoot"`
					User    int  `yaml:"runAsUser"`
					FSGroup int  `yaml:"fsGroup"`
				} `yaml:"securityContext"`
				Containers []container
				Volumes    []struct {
					Name  string
					Claim struct {
						Name string `yaml:"claimName"`
					} `yaml:"persistentVolumeClaim"`
				}
			}
		}
	}
}

type container struct {
	Args    []string
	Env     []struct{ Name, Value string }
	EnvFrom []struct {
		Secret struct{ Name string } `yaml:"secretRef"`
	} `yaml:"envFrom"`
	Ports []struct {
		Name string
		Port int `yaml:"containerPort"`
	}
	Liveness  probe `yaml:"livenessProbe"`
	Readiness probe `yaml:"readinessProbe"`
	Startup   probe `yaml:"startupProbe"`
	Context   struct {
		ReadOnly  bool  `yaml:"readOnlyRootFilesystem"`
		Escalates *bool `yaml:"allowPrivilegeEscalation"`
	} `yaml:"securityContext"`
	Mounts []struct {
		Name string
		Path string `yaml:"mountPath"`
	} `yaml:"volumeMounts"`
}

type probe struct {
	Get struct{ Path, Port string } `yaml:"httpGet"`
}

// There is one replica, never two at once, with a volume, probes, no rights, and more time to end than it takes.
func TestKubernetes(t *testing.T) {
	all := map[string]manifest{}
	in := yaml.NewDecoder(strings.NewReader(file(t, "kubernetes.yaml")))
	for {
		var m manifest
		err := in.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all[m.Kind] = m
	}
	d, claim, service := all["Deployment"].Spec, all["PersistentVolumeClaim"], all["Service"].Spec
	pod := d.Template.Spec
	if d.Replicas != 1 || d.Strategy.Type != "Recreate" || len(pod.Containers) != 1 {
		t.Fatalf("%d replicas by %s of %d containers", d.Replicas, d.Strategy.Type, len(pod.Containers))
	}
	c := pod.Containers[0]
	env := map[string]string{"LEAT_API_TOKEN": "t"} // of the secret
	for _, e := range c.Env {
		env[e.Name] = e.Value
	}
	cfg := wantConfig(t, env)
	if grace := time.Duration(pod.Grace) * time.Second; grace < time.Duration(cfg.Drain)+15*time.Second {
		t.Errorf("it is killed after %v; it may drain for %v, and end in some seconds more", grace, cfg.Drain)
	}
	if !pod.Context.NonRoot || pod.Context.User == 0 || pod.Context.FSGroup != pod.Context.User || !c.Context.ReadOnly || c.Context.Escalates == nil || *c.Context.Escalates {
		t.Errorf("rights: %+v %+v", pod.Context, c.Context)
	}
	if c.Liveness.Get.Path != "/healthz" || c.Readiness.Get.Path != "/readyz" || c.Startup.Get.Path != "/healthz" {
		t.Errorf("probes: %+v %+v %+v", c.Liveness, c.Readiness, c.Startup)
	}
	if len(c.Ports) != 1 || cfg.Listen[0] != "0.0.0.0:31337" || c.Ports[0].Port != 31337 || service.Ports[0].TargetPort != c.Ports[0].Name || c.Liveness.Get.Port != c.Ports[0].Name {
		t.Errorf("ports: %v, %+v, %+v", cfg.Listen, c.Ports, service.Ports)
	}
	if len(pod.Volumes) != 1 || pod.Volumes[0].Claim.Name != claim.Metadata.Name || c.Mounts[0].Name != pod.Volumes[0].Name || c.Mounts[0].Path != cfg.Data {
		t.Errorf("volume: %+v, %+v, data in %s", pod.Volumes, c.Mounts, cfg.Data)
	}
	if !slices.Equal(c.Args, []string{"serve"}) || len(c.EnvFrom) != 1 || c.EnvFrom[0].Secret.Name == "" {
		t.Errorf("args %v, secrets %+v", c.Args, c.EnvFrom)
	}
}

// unit returns a setting of a systemd unit; the last counts.
func unit(text, key string) string {
	value := ""
	for line := range strings.SplitSeq(text, "\n") {
		if v, ok := strings.CutPrefix(line, key+"="); ok {
			value = v
		}
	}
	return value
}

// The service may end in its own time, and its secrets don't come from a file that all can read.
func TestServiceFile(t *testing.T) {
	text := file(t, "leat.service")
	stop, err := time.ParseDuration(unit(text, "TimeoutStopSec"))
	if def := config.Default(); err != nil || stop < time.Duration(def.Drain)+15*time.Second {
		t.Errorf("TimeoutStopSec %v, %v; it may drain for %v", stop, err, def.Drain)
	}
	for key, want := range map[string]string{"KillMode": "mixed", "DynamicUser": "yes", "StateDirectory": "leat", "ProtectSystem": "strict", "Requires": "leat.socket"} {
		if got := unit(text, key); got != want {
			t.Errorf("%s=%s, want %s", key, got, want)
		}
	}
	if !strings.Contains(text, "\nCapabilityBoundingSet=\n") {
		t.Error("it keeps capabilities")
	}
	if l := unit(file(t, "leat.socket"), "ListenStream"); l != config.DefaultListen {
		t.Errorf("the socket is on %s", l)
	}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.Contains(line, "TOKEN") && !strings.HasPrefix(line, "#") {
			t.Errorf("all users can read %q", line)
		}
	}
}
