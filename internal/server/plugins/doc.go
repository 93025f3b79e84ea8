// Package plugins lets the admin install, list and remove plugins: POST /api/plugins/install, GET /api/plugins, DELETE
// /api/plugins/{name}. The admin's sockets get the progress of installations.
package plugins
