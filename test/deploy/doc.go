// Package deploy holds the tests of what docs/deploy offers: each file there is run by the program that it is for, where
// that is installed, and otherwise read as far as can be. It has no code of its own.
package deploy
