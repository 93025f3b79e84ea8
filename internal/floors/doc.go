// Package floors holds the test that keeps the house in order: a package imports only packages of lower floors, and on its
// own floor only the root of its family. ARCHITECTURE.md says which package is on which floor.
package floors
