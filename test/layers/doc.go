// Package layers tests the structure of the tree: a package imports only packages of lower layers, and in its own layer only the root of
// its family. ARCHITECTURE.md says which package is in which layer. It also checks that skipped tests say why they were skipped.
package layers
