// Package files stores the bytes of files: the attachments of conversations, uploads in progress, and the workspace that the
// gateway shares with agents on the same machine.
//
// [Open] returns the store of attachments. A file is in the folder of its conversation, under an id derived from its content,
// so the same file is stored once. [OpenUploads] resumes uploads that arrive in pieces; a finished upload is moved to one of
// the other two. [OpenWorkspace] opens the folder in which users and agents name files to each other by path. Names of files
// and access to them are the gateway's business.
//
// # Invariants
//
//   - A file exists completely or not at all: it is written to a temporary name, synced and renamed. A crash leaves only temporary files,
//     which the next Open deletes, and uploads, which continue at their last synced byte.
//   - Names chosen by users never become part of a path without validation. Conversations are stored under digests, files under ids.
//   - Reads and writes never exceed the limit that the caller sets.
//   - Symbolic links never lead out of the workspace.
package files
