// Package plugins lets the admin install, list and remove plugins over HTTP, and tells the admin's sockets how installations go:
// POST /api/plugins/install, GET /api/plugins, DELETE /api/plugins/{name}.
package plugins
