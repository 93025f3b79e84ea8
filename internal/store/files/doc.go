// Package files keeps the bytes of files: the pictures, sounds and documents that people and agents show each other.
//
// A file lies in the folder of its conversation under an id that its content gives it, so that the same file is there once
// however often it comes. What it is called and who may see it is the gateway's to know.
//
// Invariants
//
//   - A file is there whole or not at all: it is written beside, synced and renamed.
//   - Names that others chose are no part of any path: conversations lie under digests, files under their ids.
//   - No file grows beyond the limit that its writer names, and no more is read than that.
package files
