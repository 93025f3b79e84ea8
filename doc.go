// Package leat runs a Leat gateway inside a Go program, whose agents are Go values:
//
//	gw, err := leat.Start(ctx, leat.Options{Agents: map[string]agent.Agent{"echo": echo{}}})
//	...
//	http.ListenAndServe("127.0.0.1:31337", gw.Handler())
//
// The program leat (cmd/leat) has everything else: agents behind URLs and commands, users, plugins, files, webhooks and metrics. To
// talk to a gateway from a program, use [github.com/leat-dev/leat/clients/go].
//
// Invariants:
//
//   - An event is shown to readers only after the log has stored it.
//   - Every turn gets exactly one end, also after a crash if Options.Dir is set.
package leat
