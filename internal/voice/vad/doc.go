// Package vad reads the archive of the speech detector: a model that tells speech from noise in the browser of the person who speaks. The
// archive is a separate download, because it is larger than the rest of the page. web/vad makes it.
//
// Invariants
//
//   - An archive is complete, of the gateway's version, and in memory before anything is served. What changes on the disk later has no effect.
//   - Only the files of [Archive] are read. Others are ignored, so no name from an archive or from a client becomes a path.
package vad
