package server

import (
	"net"
	"net/url"
	"slices"
)

// appSchemes are the URL schemes under which app shells load their pages. No website can have one of them as its origin.
var appSchemes = []string{
	"capacitor",          // Capacitor on iOS
	"capacitor-electron", // Capacitor's desktop platform
	"electrobun",
	"tauri", // Tauri on macOS, iOS and Linux
	"views", // Electrobun's bundled pages
}

// tauriHost is the host of Tauri's pages on Windows and Android. Tauri loads them over HTTP there.
const tauriHost = "tauri.localhost"

// appOrigin reports whether an origin belongs to an app on the user's device: to a shell, by its scheme, or to pages that the
// device itself serves on any port. Capacitor on Android uses https://localhost.
func appOrigin(u *url.URL) bool {
	if u.Host == "" || u.User != nil {
		return false
	}
	if slices.Contains(appSchemes, u.Scheme) {
		return true
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	host := u.Hostname()
	if host == "localhost" || host == tauriHost {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
