// Package usage answers GET /api/usage: what turns used and cost, as JSON or CSV. An admin sees all, a user its own; the
// gateway decides.
package usage
