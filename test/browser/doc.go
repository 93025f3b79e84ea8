// Package browser drives a headless Chromium over its DevTools protocol, for tests that look at pages as people do.
//
// Invariants
//
//   - A test that can't have a browser is skipped, with a line that says what to install.
//   - The browser ends with the test that started it, and keeps nothing.
package browser
