module github.com/leat-dev/leat/test/channels

go 1.26.0

require (
	github.com/go-telegram/bot v1.23.0
	github.com/leat-dev/leat v0.0.0
)

replace github.com/leat-dev/leat => ../..
