package letta

import "github.com/leat-dev/leat/dialect"

// The names are part of Leat's configuration and of recordings.
const (
	nameV1   = "letta"
	nameCode = "letta-code"
)

// Dialect returns the dialect "letta": the stream of the V1 API.
func Dialect() dialect.Dialect {
	return dialect.Dialect{
		Name:    nameV1,
		Summary: "Letta V1 API, SSE",
		Framing: dialect.SSE,
		Decoder: func() dialect.Decoder { return New() },
	}
}

// Code returns the dialect "letta-code": frames of the App Server, or lines of Letta Code's headless mode.
func Code() dialect.Dialect {
	return dialect.Dialect{
		Name:    nameCode,
		Summary: "Letta Code: WebSocket frames of its App Server, or lines of its headless mode",
		Framing: dialect.Lines,
		Decoder: func() dialect.Decoder { return NewCode() },
	}
}
