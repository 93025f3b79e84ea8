// Package readme holds the test that runs what README.md tells people to run.
package readme
