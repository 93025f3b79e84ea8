// Package data is the surface by which an operator keeps, deletes, exports and imports what is stored of people:
// retention, purges, exports, legal holds, the audit log. docs/data.md describes it.
//
// Invariants
//
//   - All of it is the admin's, but for the export of one's own data.
//   - A stream that is cut does not look whole: an export ends with a line that says so.
package data
