package plugins

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// The limits on what a plugin consists of.
const (
	maxArchive = 64 << 20  // bytes of an archive
	maxTotal   = 256 << 20 // bytes of all files
	maxFiles   = 20_000    // files and folders
	maxPath    = 512       // bytes of a path
	maxDepth   = 32        // folders in folders
)

// spill takes files into a folder, and refuses what does not belong there.
type extractor struct {
	root  *os.Root
	files int
	bytes int64
}

// name checks the path of an entry.
func (s *extractor) checkPath(entry string) (string, error) {
	name := strings.TrimSuffix(strings.TrimPrefix(entry, "./"), "/")
	if name == "" || name == "." {
		return ".", nil
	}
	bad := func(reason string) (string, error) { return "", fmt.Errorf("entry %.200q: %s", entry, reason) }
	switch {
	case len(name) > maxPath:
		return bad(fmt.Sprintf("a path has at most %d bytes", maxPath))
	case strings.Count(name, "/") >= maxDepth:
		return bad(fmt.Sprintf("it lies more than %d folders deep", maxDepth))
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' || r == '\uFFFD' }):
		return bad("its path holds what no path may")
	case path.Clean(name) != name || !filepath.IsLocal(filepath.FromSlash(name)):
		return bad("it leads out of the plugin's folder")
	}
	if s.files++; s.files > maxFiles {
		return bad(fmt.Sprintf("there are more than %d files", maxFiles))
	}
	return filepath.FromSlash(name), nil
}

func (s *extractor) makeFolder(entry string) error {
	name, err := s.checkPath(entry)
	if err != nil || name == "." {
		return err
	}
	return s.root.MkdirAll(name, 0o700)
}

func (s *extractor) writeFile(entry string, mode fs.FileMode, r io.Reader) error {
	name, err := s.checkPath(entry)
	if err != nil {
		return err
	}
	if dir := filepath.Dir(name); dir != "." {
		if err := s.root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	perm := fs.FileMode(0o600)
	if mode&0o111 != 0 {
		perm = 0o700
	}
	f, err := s.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("entry %.200q stands there twice", entry)
	}
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(r, maxTotal-s.bytes+1))
	s.bytes += n
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil && s.bytes > maxTotal {
		err = fmt.Errorf("it comes to more than %d MiB", maxTotal>>20)
	}
	return err
}

// unpack takes an archive apart into a folder.
func unpack(archive *os.File, into *os.Root) error {
	magic := make([]byte, 4)
	if _, err := archive.ReadAt(magic, 0); err != nil {
		return errors.New("the archive is empty, or too short to be one")
	}
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return err
	}
	s := &extractor{root: into}
	switch {
	case magic[0] == 0x1f && magic[1] == 0x8b:
		return s.tarball(archive)
	case string(magic[:2]) == "PK":
		return s.zip(archive)
	}
	return errors.New("the archive is neither a .tar.gz nor a .zip")
}

func (s *extractor) tarball(r io.Reader) error {
	gz, err := gzip.NewReader(r)
	if err != nil {
		return fmt.Errorf("the archive: %w", err)
	}
	// Headers count too: an archive of nothing else ends somewhere.
	t := tar.NewReader(io.LimitReader(gz, maxTotal+maxFiles*4096))
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the archive: %w", err)
		}
		switch h.Typeflag {
		case tar.TypeReg:
			err = s.writeFile(h.Name, h.FileInfo().Mode(), t)
		case tar.TypeDir:
			err = s.makeFolder(h.Name)
		case tar.TypeXGlobalHeader: // a note of git's
		default:
			err = fmt.Errorf("entry %.200q is neither a file nor a folder; links and devices are refused", h.Name)
		}
		if err != nil {
			return err
		}
	}
}

func (s *extractor) zip(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	z, err := zip.NewReader(f, info.Size())
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // paths are looked at below
		return fmt.Errorf("the archive: %w", err)
	}
	for _, e := range z.File {
		switch mode := e.Mode(); {
		case mode.IsDir():
			err = s.makeFolder(e.Name)
		case mode.IsRegular():
			err = s.zipEntry(e)
		default:
			err = fmt.Errorf("entry %.200q is neither a file nor a folder; links and devices are refused", e.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *extractor) zipEntry(e *zip.File) error {
	r, err := e.Open()
	if err != nil {
		return fmt.Errorf("entry %.200q: %w", e.Name, err)
	}
	defer r.Close()
	return s.writeFile(e.Name, e.Mode(), r)
}

// copyFolder takes a folder of this machine over, but for what a checkout has beside the program.
func copyFolder(from string, into *os.Root) error {
	root, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer root.Close()
	s := &extractor{root: into}
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == ".bin" && path.Base(path.Dir(name)) == "node_modules"):
			return fs.SkipDir
		case d.IsDir():
			return s.makeFolder(name)
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is neither a file nor a folder; links and devices are refused", name)
		}
		f, err := root.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		return s.writeFile(filepath.ToSlash(name), info.Mode(), f)
	})
}

// weigh holds a folder against the limits once others have written into it.
func checkSize(dir string) error {
	files, bytes := 0, int64(0)
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case !d.IsDir() && !info.Mode().IsRegular():
			return fmt.Errorf("%s is neither a file nor a folder", filepath.Base(name))
		case info.Mode().IsRegular():
			bytes += info.Size()
		}
		if files++; files > maxFiles || bytes > maxTotal {
			return fmt.Errorf("with its dependencies it comes to more than %d files or %d MiB", maxFiles, maxTotal>>20)
		}
		return nil
	})
}
