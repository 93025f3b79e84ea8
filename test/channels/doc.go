// Package channels holds the tests that check the fakes of chat platforms (package chattest) with clients that Leat doesn't use. It is a
// module of its own, because of what those clients need.
package channels
