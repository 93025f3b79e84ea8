// Package dendrite holds the test of the Matrix channel against Dendrite, a real homeserver. It is a module of its own, because of what
// Dendrite needs: about 2 GB in the module cache, cgo, and some minutes to build. So it runs only with LEAT_FULL=1.
package dendrite
