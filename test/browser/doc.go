// Package browser drives a headless Chromium through the DevTools protocol, for tests of the dashboard and of example pages.
//
// Invariants
//
//   - If Chromium isn't installed, the test is skipped with a message that names the package to install.
//   - The browser ends with the test that started it, and its profile is deleted.
package browser
