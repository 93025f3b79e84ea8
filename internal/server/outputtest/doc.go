// Package outputtest runs a gateway with one output for the output's own tests, and the examples of its documentation.
//
// Invariants
//
//   - A harness owns what it starts, and stops at the end of the test, or earlier by Stop.
//   - Responses are closed at the end of the test.
package outputtest
