// Package plugins installs agents and channels that ship as separate programs: it fetches a plugin, verifies it, and stores it
// in a folder of the gateway's data. A [Runtime] runs the plugins; this package never starts them itself.
//
// The store's folder contains the index file and one folder with a random name per installation. Replacing a plugin creates a new folder,
// so the files of a running version never change.
//
// # Order of calls
//
// [Open] removes what an interrupted installation left, and [Store.List] returns the plugins to start. [Store.Install] then
// goes through the phases resolving, downloading, installing-deps, validating, configuring and restarting, and reports each.
// Remove stops a plugin and deletes it.
//
// # Invariants
//
//   - An installation is atomic. The rename of the index file commits it. A folder that the index doesn't list is garbage, and the
//     next Open deletes it, so a crash at any point leaves either the old version or the new one.
//   - No code of a plugin runs before it is validated. Installation scripts of npm packages never run.
//   - Every installed file is a regular file or a folder below the plugin's own folder. The number and total size of the files are
//     limited, whatever an archive declares.
//   - One installation or removal runs at a time. Others get [ErrBusy].
package plugins
