// Package usage answers GET /api/usage: the tokens and costs of turns, as JSON or CSV. The gateway limits the answer: an admin
// sees all users, a user only itself.
package usage
