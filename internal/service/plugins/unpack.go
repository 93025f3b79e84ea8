// Unpacking archives within limits: no path outside of the folder, no links, no bomb.

package plugins

import (
	"archive/tar"
	"archive/zip"
	"cmp"
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

// Limits for archives and for the installed files. They protect the disk from a malicious archive.
const (
	maxArchive = 64 << 20  // size of an archive, bytes
	maxTotal   = 256 << 20 // total size of the files, bytes
	maxFiles   = 20_000    // files and folders
	maxPath    = 512       // length of a path, bytes
	maxDepth   = 32        // nesting of folders
)

// extractor writes files below root and enforces the limits. root is an os.Root, so that even a path that checkPath should have
// refused can't leave the folder. files and bytes count what was extracted so far, folders included in files.
type extractor struct {
	root  *os.Root
	files int
	bytes int64
}

// checkPath validates the path of an entry, counts the entry, and returns the path in the system's form. It returns "." for the
// root. It accepts only paths that are already clean, so two spellings can't name one file.
func (s *extractor) checkPath(entry string) (string, error) {
	name := strings.TrimSuffix(strings.TrimPrefix(entry, "./"), "/")
	if name == "" || name == "." {
		return ".", nil
	}
	bad := func(reason string) (string, error) { return "", fmt.Errorf("entry %.200q: %s", entry, reason) }
	switch {
	case len(name) > maxPath:
		return bad(fmt.Sprintf("the path is longer than %d bytes", maxPath))
	case strings.Count(name, "/") >= maxDepth:
		return bad(fmt.Sprintf("nested more than %d folders deep", maxDepth))
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' || r == '\uFFFD' }):
		return bad("the path contains an invalid character")
	case path.Clean(name) != name || !filepath.IsLocal(filepath.FromSlash(name)):
		return bad("the path leaves the plugin's folder")
	}
	if s.files++; s.files > maxFiles {
		return bad(fmt.Sprintf("more than %d files", maxFiles))
	}
	return filepath.FromSlash(name), nil
}

// errKind is the error for a link, a device or another entry that may not be installed.
func errKind(name string) error {
	return fmt.Errorf("%s is neither a file nor a folder; links and devices are not allowed", name)
}

// makeFolder creates a folder of an archive with permissions for the gateway only.
func (s *extractor) makeFolder(entry string) error {
	name, err := s.checkPath(entry)
	if err != nil || name == "." {
		return err
	}
	return s.root.MkdirAll(name, 0o700)
}

// writeFile writes one file. It keeps only the executable bit of mode, and refuses a second file with the same path. The sizes
// of all files add up in s.bytes, so many small files can't exceed the total either.
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
		return fmt.Errorf("duplicate entry %.200q", entry)
	}
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(r, maxTotal-s.bytes+1))
	s.bytes += n
	if err = cmp.Or(err, f.Close()); err == nil && s.bytes > maxTotal {
		err = fmt.Errorf("the files are larger than %d MiB in total", maxTotal>>20)
	}
	return err
}

// unpack extracts a .tar.gz or .zip archive, recognized by its first bytes. The file name isn't used, because archives often
// come from URLs without one.
func unpack(archive *os.File, into *os.Root) error {
	magic := make([]byte, 4)
	if _, err := archive.ReadAt(magic, 0); err != nil {
		return errors.New("the archive is empty or too short")
	}
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return err
	}
	s := &extractor{root: into}
	switch string(magic[:2]) {
	case "\x1f\x8b":
		return s.tarball(archive)
	case "PK":
		return s.zip(archive)
	}
	return errors.New("the archive is neither a .tar.gz nor a .zip")
}

// tarball extracts a .tar.gz archive. Only regular files and folders are allowed: a link could point out of the folder, and a
// later entry could write through it.
func (s *extractor) tarball(r io.Reader) error {
	gz, err := gzip.NewReader(r)
	if err != nil {
		return fmt.Errorf("read the archive: %w", err)
	}
	// The limit includes headers, so that an archive of only headers ends too.
	t := tar.NewReader(io.LimitReader(gz, maxTotal+maxFiles*4096))
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the archive: %w", err)
		}
		switch h.Typeflag {
		case tar.TypeReg:
			err = s.writeFile(h.Name, h.FileInfo().Mode(), t)
		case tar.TypeDir:
			err = s.makeFolder(h.Name)
		case tar.TypeXGlobalHeader: // written by git archive
		default:
			err = errKind(fmt.Sprintf("entry %.200q", h.Name))
		}
		if err != nil {
			return err
		}
	}
}

// zip extracts a .zip archive under the same rules as tarball. The directory at the end of the archive decides which entries exist, so a
// prefix or data between entries is ignored.
func (s *extractor) zip(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	z, err := zip.NewReader(f, info.Size())
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // checkPath validates the paths
		return fmt.Errorf("read the archive: %w", err)
	}
	for _, e := range z.File {
		switch mode := e.Mode(); {
		case mode.IsDir():
			err = s.makeFolder(e.Name)
		case mode.IsRegular():
			err = s.zipEntry(e)
		default:
			err = errKind(fmt.Sprintf("entry %.200q", e.Name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// zipEntry extracts one file. The declared size isn't trusted: writeFile counts the bytes that are actually decompressed.
func (s *extractor) zipEntry(e *zip.File) error {
	r, err := e.Open()
	if err != nil {
		return fmt.Errorf("entry %.200q: %w", e.Name, err)
	}
	defer r.Close()
	return s.writeFile(e.Name, e.Mode(), r)
}

// copyFolder copies a local folder. It skips .git and node_modules/.bin, whose links would be refused. The folder is opened as
// a root, so links in it can't lead elsewhere.
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
			return errKind(name)
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

// checkSize applies the limits to a folder after npm has written into it. npm writes the files itself, so the limits can only
// be checked afterwards. Links are refused here too: a package could otherwise bring one through its dependencies.
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
			return fmt.Errorf("with its dependencies, the plugin exceeds %d files or %d MiB", maxFiles, maxTotal>>20)
		}
		return nil
	})
}
