package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// buildPeers builds the program of the module in the folder peers and returns its path.
func buildPeers(ctx context.Context, dir string) (string, error) {
	root, err := output(exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}"))
	if err != nil {
		return "", fmt.Errorf("build peers: %w", err)
	}
	path := filepath.Join(dir, "peers")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, ".")
	cmd.Dir = filepath.Join(root, "peers")
	if _, err := output(cmd); err != nil {
		return "", fmt.Errorf("build peers: %w", err)
	}
	return path, nil
}
