// Package letta drives a real Letta App Server through Leat: make e2e-letta. Letta Code and the Node that it needs come from
// npm, by exact version, once, into the user's cache folder; its model is a script on loopback. What the browser's API shows
// has to be what the model said.
//
// Its tests have the build tag e2e. Where npm does not answer they are skipped, and say so.
package letta
