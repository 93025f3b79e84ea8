package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/voice/recognition"
	"github.com/leat-dev/leat/internal/voice/speech"
)

// Voice configures conversations by voice.
type Voice struct {
	Interrupt string `yaml:"interrupt"`
	// VAD is the path of the speech detector's archive, for package vad. If it is empty, the page detects speech by its loudness.
	VAD         string      `yaml:"vad"`
	Speech      Speech      `yaml:"speech"`
	Recognition Recognition `yaml:"recognition"`
}

// Speech configures the engine that speaks answers. If Engine is empty, it is espeak-ng if that is installed.
type Speech struct {
	Engine   string `yaml:"engine"`
	URL      string `yaml:"url"`
	Key      string `yaml:"key"`
	KeyEnv   string `yaml:"key_env"`
	KeyFile  string `yaml:"key_file"`
	Model    string `yaml:"model"`
	Voice    string `yaml:"voice"`
	Language string `yaml:"language"`
}

// Recognition configures the recogniser of speech. If Engine is empty, speech is not recognised.
type Recognition struct {
	Engine   string `yaml:"engine"`
	URL      string `yaml:"url"`
	Key      string `yaml:"key"`
	KeyEnv   string `yaml:"key_env"`
	KeyFile  string `yaml:"key_file"`
	Model    string `yaml:"model"`
	Language string `yaml:"language"`
}

// The values of the key voice.interrupt.
const (
	interruptTurn = "turn" // an interruption also stops the agent's turn
	// InterruptSpeech makes an interruption end only the speech.
	InterruptSpeech = "speech"
)

// VoiceOff is the value of the keys voice.speech.engine and voice.recognition.engine that uses none.
const VoiceOff = "off"

// check checks the values. Whether the engines can be used is only known when they are made.
func (v *Voice) check(bad reporter) {
	if v.Interrupt != interruptTurn && v.Interrupt != InterruptSpeech {
		bad("voice.interrupt", "unknown value %q; use %s or %s", v.Interrupt, interruptTurn, InterruptSpeech)
	}
	if e := v.Speech.Engine; e != "" && e != VoiceOff && !slices.Contains(speech.Names(), e) {
		bad("voice.speech.engine", "unknown engine %q; use %s or %s", e, strings.Join(speech.Names(), ", "), VoiceOff)
	}
	if e := v.Recognition.Engine; e != "" && e != VoiceOff && !slices.Contains(recognition.Names(), e) {
		bad("voice.recognition.engine", "unknown engine %q; use %s or %s", e, strings.Join(recognition.Names(), ", "), VoiceOff)
	}
	for section, sources := range map[string][]string{
		"voice.speech":      {v.Speech.Key, v.Speech.KeyEnv, v.Speech.KeyFile},
		"voice.recognition": {v.Recognition.Key, v.Recognition.KeyEnv, v.Recognition.KeyFile},
	} {
		if len(slices.DeleteFunc(sources, func(s string) bool { return s == "" })) > 1 {
			bad(section, "key, key_env and key_file are different ways to set one key; use one of them")
		}
	}
}

// APIKey returns the key for the speech engine, or "". Errors are [ErrInvalid].
func (s *Speech) APIKey() (string, error) {
	return apiKey("voice.speech", s.Key, s.KeyEnv, s.KeyFile)
}

// APIKey returns the key for the recogniser, or "". Errors are [ErrInvalid].
func (r *Recognition) APIKey() (string, error) {
	return apiKey("voice.recognition", r.Key, r.KeyEnv, r.KeyFile)
}

// apiKey reads a key in the way in which agents read theirs.
func apiKey(section, key, variable, file string) (string, error) {
	spec := agent.Spec{Options: map[string]string{}}
	for name, value := range map[string]string{"key": key, "key_env": variable, "key_file": file} {
		if value != "" {
			spec.Options[name] = value
		}
	}
	secret, err := spec.Secret("key")
	if err != nil {
		return "", fmt.Errorf("%w: %s: %w", ErrInvalid, section, err)
	}
	return secret, nil
}
