package web

import "embed"

// Dist are the built files: index.html, and what it loads below ui/. Of each file NAME there are NAME.br and NAME.gz, but not NAME itself.
//
//go:embed dist
var Dist embed.FS
