//go:build e2e

// Package harness has what the suites that drive real agent runtimes share:
//
//   - [Install] installs a runtime from npm once, into the user's cache folder.
//   - [Program] is a process that a test starts, kills and starts again. [Leat] returns one for the gateway itself.
//   - [Model] is a model API that answers from scripts, so that every run has the same answers.
//   - [Client] and [Viewer] read conversations through the API that browsers use.
//   - [Storm] mixes turns, a second client, cut connections and kills, and compares what a reader has with the upstream's history.
//   - [RunBrowser] runs a script of web/test/real in Chromium.
//
// The package's helpers fail the test themselves, so callers don't check errors.
package harness
