package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
)

type backupCmd struct {
	remote
	Data string `help:"Folder of the data of a gateway that does not run. Default: ask the running one." placeholder:"DIR"`
	File string `arg:"" help:"File to make; it must not be there."`
}

func (c *backupCmd) Run(a *app) (err error) {
	if c.Data != "" {
		return c.local(a)
	}
	// Made first, and only where there is none: nobody wants a backup to cost the one before.
	f, err := os.OpenFile(c.File, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(c.File))
		}
	}()
	n, err := c.client().Backup(a.ctx, f)
	if err := errors.Join(c.explain(err), f.Sync(), f.Close()); err != nil {
		return err
	}
	fmt.Fprintf(a.err, "%s: %d bytes\n", c.File, n)
	return nil
}

// local opens the folder itself, which is refused while a gateway has it.
func (c *backupCmd) local(a *app) error {
	if _, err := os.Stat(c.Data); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	j, err := sqlite.Open(sqlite.Options{Dir: c.Data})
	if err != nil {
		return err
	}
	return errors.Join(j.Backup(a.ctx, c.File), j.Close())
}

type restoreCmd struct {
	Data string `help:"Folder to make the data in; there may be none in it. Default: where serve looks for it." placeholder:"DIR" env:"LEAT_DATA"`
	File string `arg:"" help:"The backup." type:"existingfile"`
}

func (c *restoreCmd) Run(a *app) error {
	if c.Data == "" {
		dir, err := config.DataDir(a.getenv)
		if err != nil {
			return err
		}
		c.Data = dir
	}
	if err := sqlite.Restore(a.ctx, c.File, c.Data); err != nil {
		return err
	}
	fmt.Fprintf(a.err, "restored to %s\n", c.Data)
	return nil
}
