// Package data serves operators that export, import, delete and retain users' data: retention, purges, exports, legal holds,
// and the audit log. docs/data.md specifies the routes.
//
// Invariants
//
//   - Only the admin may call the routes, except that users may export their own data.
//   - A stream that is interrupted does not look complete: an export ends with a line that marks its end.
package data
