package process

import (
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"runtime"
	"strings"
)

// Always are the environment variables that every program gets, where they are set.
var Always = func() []string {
	names := []string{"PATH", "HOME", "LANG", "TZ"}
	if runtime.GOOS == "windows" { // without which few programs start there
		names = append(names, "SYSTEMROOT", "USERPROFILE", "TEMP", "TMP", "PATHEXT", "COMSPEC")
	}
	return names
}()

// CheckEnv refuses names that are none, and those under which the gateway itself is told secrets.
func CheckEnv(names []string) error {
	for _, n := range names {
		upper := strings.ToUpper(n)
		switch {
		case n == "", strings.ContainsAny(n, "= \x00"):
			return fmt.Errorf("env: %q is no name of a variable", n)
		case strings.HasPrefix(upper, "LEAT_"), strings.HasPrefix(upper, "ELIZA_"):
			return fmt.Errorf("env: %s belongs to the gateway and is not handed on", n)
		}
	}
	return nil
}

// Environment adds to env, as NAME=value, the variables of Always and those named that are set.
func Environment(env []string, names ...string) []string {
	for _, list := range [][]string{Always, names} {
		for _, n := range list {
			if v, ok := os.LookupEnv(n); ok {
				env = append(env, n+"="+v)
			}
		}
	}
	return env
}

// Names takes a list of names apart that are separated by commas.
func Names(list string) (names []string) {
	for v := range strings.SplitSeq(list, ",") {
		if v = strings.TrimSpace(v); v != "" {
			names = append(names, v)
		}
	}
	return names
}

// Find looks a command's program up, so that a wrong name is told at the start and not to whoever asks first.
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
