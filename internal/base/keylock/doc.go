// Package keylock has a mutex for each key, such as the id of a chat. Waiting for one ends with a context.
package keylock
