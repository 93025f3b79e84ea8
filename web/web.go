package web

import "embed"

// Dist are the built files: index.html, and what it loads below ui/.
//
//go:embed dist
var Dist embed.FS
