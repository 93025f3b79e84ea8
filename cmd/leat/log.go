package main

import (
	"log/slog"
	"time"

	"github.com/lmittmann/tint"

	"github.com/leat-dev/leat/config"
)

// logger writes to standard error: coloured text on a terminal, else JSON.
func (a *app) logger(c config.Log) (*slog.Logger, error) {
	level := slog.LevelInfo
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		return nil, err
	}
	t := a.terminal(a.err)
	if c.Format == config.FormatJSON || c.Format == config.FormatAuto && !t.is {
		return slog.New(slog.NewJSONHandler(a.err, &slog.HandlerOptions{Level: level})), nil
	}
	return slog.New(tint.NewTextHandler(a.err, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: !t.colour})), nil
}
