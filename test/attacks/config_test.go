package attacks

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// People paste what these commands print into reports. URLs hold secrets in their queries and before their hosts.
func TestPrintedConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "leat.yaml")
	err := os.WriteFile(file, []byte(`
token: SECRET-token-0123456789
agents:
  a: {kind: http, target: "https://user:SECRET1@agent.example/x?key=SECRET2&SECRET3", control: "https://agent.example/c?token=SECRET4", dialect: eliza-actions}
  b: {kind: openai, target: m, base_url: "https://model.example/v1", token: SECRET7}
webhooks:
  - {name: w, url: "https://hook.example/in?sig=SECRET5", secret: SECRET-0123456789abcdef0123456789abcdef}
users: {jwks: "https://id.example/keys?code=SECRET6", audience: [leat]}
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"config", "print"}, {"config", "print", "--json"}, {"agents"}, {"agents", "--json"}} {
		t.Run(strings.Join(command, " "), func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), program, append(command, "--config", file)...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if text := string(out); strings.Contains(text, "SECRET") || !strings.Contains(text, "agent.example") {
				t.Error(text)
			}
		})
	}
}
