package tsclient

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/leat-dev/leat/test/binary"
)

// limit is how long all of it may take: npm fetches packages where it has none.
const limit = 25 * time.Minute

// The tests of clients/ts pass, with a gateway of this tree behind them.
func TestNpmFull(t *testing.T) {
	needsNpm(t)
	env := []string{"LEAT_BIN=" + binary.Leat(t)}
	run(t, "../../clients/ts", env, "npm", "ci")
	run(t, "../../clients/ts", env, "npm", "test")
}

func needsNpm(t *testing.T) {
	t.Helper()
	if os.Getenv("LEAT_FULL") == "" {
		t.Skip("SKIPPED: set LEAT_FULL=1 to have the tests of clients/ts run: they fetch packages from npm")
	}
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIPPED: %s is not installed; install Node 20.3 or newer with npm to have the tests of clients/ts run", program)
		}
	}
}

func run(t *testing.T, dir string, env []string, name string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}
