package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/channel"
	servervoice "github.com/leat-dev/leat/internal/server/voice"
	"github.com/leat-dev/leat/internal/voice"
	"github.com/leat-dev/leat/internal/voice/note"
	"github.com/leat-dev/leat/internal/voice/recognition"
	"github.com/leat-dev/leat/internal/voice/speech"
	"github.com/leat-dev/leat/internal/voice/vad"
	"github.com/leat-dev/leat/internal/voice/wire"
)

// openVoice makes the engines of conversations by voice, and reads the speech detector. The start fails if a configured
// one can't be used, because it is in the configuration on purpose. Without an engine, connections by voice report that, and everything else works.
func (a *App) openVoice(_ context.Context, opt Options) error {
	cfg, log := &a.cfg.Voice, a.log.With("part", "voice")
	engine, err := speechEngine(&cfg.Speech, opt.Getenv, log)
	if err != nil {
		return fmt.Errorf("%w: voice.speech: %w", config.ErrInvalid, err)
	}
	recognizer, err := recognizer(&cfg.Recognition, opt.Getenv)
	if err != nil {
		return fmt.Errorf("%w: voice.recognition: %w", config.ErrInvalid, err)
	}
	if cfg.VAD != "" {
		if a.detector, err = vad.Open(cfg.VAD); err != nil {
			return fmt.Errorf("%w: voice.vad: %w", config.ErrInvalid, err)
		}
	}
	for _, closer := range []any{engine, recognizer} {
		if c, ok := closer.(io.Closer); ok {
			a.onClose(c.Close)
		}
	}
	a.speech = servervoice.Speech{Engine: engine, Voice: cfg.Speech.Voice, Language: cfg.Speech.Language}
	a.notes = openNotes(note.Options{
		Engine: engine, Recognizer: recognizer, Voice: cfg.Speech.Voice, Language: cfg.Speech.Language, RecognitionLanguage: cfg.Recognition.Language, Log: log,
	})
	a.voice = wire.New(wire.Options{
		Engine: engine, Recognizer: recognizer, Voice: cfg.Speech.Voice, Language: cfg.Speech.Language,
		RecognitionLanguage: cfg.Recognition.Language, KeepTurn: cfg.Interrupt == config.InterruptSpeech, Log: log,
	})
	return nil
}

// openNotes returns what channels do with voice notes. Without a recogniser, or the programs for their format, they are files like others,
// and answers to them are not spoken.
func openNotes(o note.Options) (v channel.Voice) {
	if o.Recognizer == nil {
		return v
	}
	notes, err := note.New(o)
	if err != nil {
		o.Log.Info("voice notes of chats are neither transcribed nor spoken", "error", err)
		return v
	}
	v.Transcribe = notes.Transcribe
	if o.Engine != nil {
		v.Speak = notes.Speak
	}
	return v
}

// speechEngine makes the engine that speaks. It returns nil if there is none.
func speechEngine(c *config.Speech, getenv func(string) (string, bool), log *slog.Logger) (voice.Engine, error) {
	switch c.Engine {
	case config.VoiceOff:
		return nil, nil
	case "":
		engine, err := speech.Default(log)
		if failure, ok := errors.AsType[*voice.Failure](err); ok && failure.Reason == voice.NotInstalled {
			log.Info("answers can't be spoken, because espeak-ng isn't installed and no other engine is configured")
			return nil, nil
		}
		return engine, err
	}
	key, err := c.APIKey()
	if err != nil {
		return nil, err
	}
	for _, k := range speech.Kinds() {
		if k.Name == c.Engine && key == "" && k.KeyVariable != "" {
			key, _ = getenv(k.KeyVariable)
		}
	}
	return speech.New(speech.Options{Engine: c.Engine, URL: c.URL, Key: key, Model: c.Model, Voice: c.Voice, Language: c.Language, Log: log})
}

// recognizer makes the recogniser of speech. It returns nil if there is none.
func recognizer(c *config.Recognition, getenv func(string) (string, bool)) (voice.Recognizer, error) {
	if c.Engine == "" || c.Engine == config.VoiceOff {
		return nil, nil
	}
	key, err := c.APIKey()
	if err != nil {
		return nil, err
	}
	for _, k := range recognition.Kinds() {
		if k.Name == c.Engine && key == "" && k.KeyVariable != "" {
			key, _ = getenv(k.KeyVariable)
		}
	}
	return recognition.New(recognition.Options{Engine: c.Engine, URL: c.URL, Key: key, Model: c.Model, Language: c.Language})
}
