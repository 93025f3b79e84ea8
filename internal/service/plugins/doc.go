// Package plugins installs plugins: it fetches them, looks whether they are what they say, and keeps them in a folder of the
// gateway's data. What runs them is a [Runtime].
//
// Invariants
//
//   - An installation is there whole or not at all. It is committed by one rename of the index; a folder that the index does not
//     name is rubbish, and removed when the store is opened.
//   - Nothing of a plugin is run before it was validated, and no script of a package is ever run by its installation.
//   - Every file lies below the plugin's own folder, is a file or a folder, and comes within limits on number and bytes, whatever
//     an archive says.
//   - One installation or removal runs at a time.
package plugins
