// Package files uploads and serves files: the images, sounds and documents of a conversation. A user who may read a
// conversation may read its files, and one who may write in it may add files. Large files use uploads that can be resumed. If
// there is a workspace, files are also stored in it and addressed by path.
//
// Invariants
//
//   - A browser displays only types that can't contain a script, and saves all others. No type is guessed, and nothing that is served
//     can run scripts in the site's origin.
//   - A conversation's file never changes, so browsers may cache it forever. A file of the workspace is revalidated on each use.
//   - An upload, and the file that it creates in the workspace, belong to their creator. Other users get 404.
package files
