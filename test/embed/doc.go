// Package embed has the test that another module can build programs with Leat: its clients, and the packages for writing agents.
package embed
