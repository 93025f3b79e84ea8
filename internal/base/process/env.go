package process

import (
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"runtime"
	"slices"
	"strings"
)

// Always lists the environment variables that every program gets if they are set.
var Always = func() []string {
	names := []string{"PATH", "HOME", "LANG", "TZ"}
	if runtime.GOOS == "windows" { // few programs start without these on Windows
		names = append(names, "SYSTEMROOT", "USERPROFILE", "TEMP", "TMP", "PATHEXT", "COMSPEC")
	}
	return names
}()

// CheckEnv refuses malformed names and those of the gateway's own secrets.
func CheckEnv(names []string) error {
	for _, n := range names {
		upper := strings.ToUpper(n)
		switch {
		case n == "", strings.ContainsAny(n, "= \x00"):
			return fmt.Errorf("env: %q is not a valid variable name", n)
		case strings.HasPrefix(upper, "LEAT_"), strings.HasPrefix(upper, "ELIZA_"):
			return fmt.Errorf("env: %s belongs to the gateway and cannot be passed on", n)
		}
	}
	return nil
}

// Environment appends to env, as NAME=value, those variables of Always and of names that are set.
func Environment(env []string, names ...string) []string {
	for _, n := range slices.Concat(Always, names) {
		if v, ok := os.LookupEnv(n); ok {
			env = append(env, n+"="+v)
		}
	}
	return env
}

// Names splits a list of names separated by commas.
func Names(list string) (names []string) {
	for v := range strings.SplitSeq(list, ",") {
		if v = strings.TrimSpace(v); v != "" {
			names = append(names, v)
		}
	}
	return names
}

// Find looks up a command's program, so that a wrong name is an error at the start and not in the first turn.
func Find(command []string) (string, error) {
	if len(command) == 0 || command[0] == "" {
		return "", errors.New("the command is empty")
	}
	path, err := osexec.LookPath(command[0])
	if err != nil {
		return "", fmt.Errorf("the program can't be run: %w", err)
	}
	return path, nil
}
