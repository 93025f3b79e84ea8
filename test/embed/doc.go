// Package embed holds the test that a module of its own, outside this tree, can build on Leat: its clients, and the
// packages that an agent is written with.
package embed
