package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/voice"
)

// output writes what a session makes. A write has its own limit and continues when the session ends, because interrupting it would break
// the connection.
type output struct{ socket *websocket.Conn }

var _ voice.Output = output{}

// flushFrame is the binary frame that makes the client drop its queue. PCM is never one byte.
var flushFrame = []byte{0}

// Audio implements [voice.Output].
func (o output) Audio(pcm []byte) error { return o.write(websocket.MessageBinary, pcm, writeLimit) }

// Flush implements [voice.Output].
func (o output) Flush() error { return o.write(websocket.MessageBinary, flushFrame, flushLimit) }

// Frame implements [voice.Output].
func (o output) Frame(f voice.Frame) error {
	b, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("frame: %w", err)
	}
	return o.write(websocket.MessageText, b, writeLimit)
}

// write writes a message within a limit. It continues when the session ends, because an interrupted write would break the connection.
func (o output) write(kind websocket.MessageType, b []byte, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := o.socket.Write(ctx, kind, b); err != nil {
		return fmt.Errorf("%w: %w", errDisconnected, err)
	}
	return nil
}
