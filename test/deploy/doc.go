// Package deploy has the tests of the files in docs/deploy. Each file is run by the program that it is for, if that is installed; otherwise
// the test checks only what it can without the program, such as names and ports.
package deploy
