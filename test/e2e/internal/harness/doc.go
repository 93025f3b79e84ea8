//go:build e2e

// Package harness is what the suites that drive real runtimes have in common: programs that are installed once, started, killed and
// started again; a model that plays scripts; a client that looks at answers as a browser's API shows them; and a real browser.
package harness
