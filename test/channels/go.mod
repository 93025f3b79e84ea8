module github.com/leat-dev/leat/test/channels

go 1.26.0

require (
	github.com/bwmarrin/discordgo v0.29.0
	github.com/go-telegram/bot v1.23.0
	github.com/larksuite/oapi-sdk-go/v3 v3.4.20
	github.com/leat-dev/leat v0.0.0
	github.com/slack-go/slack v0.34.0
	maunium.net/go/mautrix v0.25.0
)

require (
	filippo.io/edwards25519 v1.1.0 // indirect
	github.com/coder/websocket v1.8.15 // indirect
	github.com/gorilla/websocket v1.5.3 // indirect
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/rs/zerolog v1.34.0 // indirect
	github.com/tidwall/gjson v1.18.0 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.2.1 // indirect
	github.com/tidwall/sjson v1.2.5 // indirect
	go.mau.fi/util v0.9.0 // indirect
	golang.org/x/crypto v0.41.0 // indirect
	golang.org/x/exp v0.0.0-20250813145105-42675adae3e6 // indirect
	golang.org/x/net v0.43.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.42.0 // indirect
)

replace github.com/leat-dev/leat => ../..
