// Package attacks plays the attacks that docs/security.md lists against the real program, and holds that list to the truth:
// every row names a test, and every test that it names is there.
package attacks
