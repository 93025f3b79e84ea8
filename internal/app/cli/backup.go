package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
)

// backupCmd copies the store of a gateway to a file. A running gateway has exclusive use of its data folder, so by
// default the copy is requested from it over HTTP. With --data the command opens the folder itself.
type backupCmd struct {
	remote
	Data string `help:"Data folder of a gateway that is not running. By default, the running gateway makes the backup." placeholder:"DIR"`
	JSON bool   `name:"json" help:"Print the file and its size as JSON."`
	File string `arg:"" help:"File to create; it must not exist."`
}

func (c *backupCmd) Run(a *app) error {
	if c.Data != "" {
		return c.local(a)
	}
	return saving{Output: c.File, JSON: c.JSON}.save(a, "backup", "", func(w io.Writer) (int64, error) {
		n, err := c.client().Backup(a.ctx, w)
		return n, c.explain(err)
	})
}

// local opens the data folder itself, which fails while a gateway is using it. A folder that doesn't exist is an
// error: opening it would create an empty store, and the backup would be empty too.
func (c *backupCmd) local(a *app) error {
	// sqlite.Open would create a missing folder.
	if _, err := os.Stat(c.Data); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	j, err := sqlite.Open(sqlite.Options{Dir: c.Data})
	if err != nil {
		return err
	}
	if err := errors.Join(j.Backup(a.ctx, c.File), j.Close()); err != nil || !c.JSON {
		return err
	}
	info, err := os.Stat(c.File)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return a.printJSON(savedFile{c.File, info.Size()}, nil)
}

// restoreCmd creates a data folder from a backup. It never writes to a folder that contains data: to go back to a
// backup, the operator moves the old folder away first, and can still return to it.
type restoreCmd struct {
	Data string `help:"Data folder to create; it must not contain data yet. Default: the data folder of serve." placeholder:"DIR" env:"LEAT_DATA"`
	JSON bool   `name:"json" help:"Print the data folder as JSON."`
	File string `arg:"" help:"Backup to restore." type:"existingfile"`
}

// Run restores a backup to a data folder. It needs no gateway, and fails if one uses the folder.
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
	if c.JSON {
		return a.printJSON(map[string]string{"data": c.Data}, nil)
	}
	fmt.Fprintf(a.stderr, "restored to %s\n", c.Data)
	return nil
}
