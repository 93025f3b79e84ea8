// Package tsclient holds the test that runs the tests of the TypeScript client, clients/ts, against this gateway.
package tsclient
