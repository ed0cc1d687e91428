package tree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"

	"pbuild/engine/digest"

	"golang.org/x/sync/errgroup"
)

// Checkout writes a tree's files below dir, which must be empty or absent, with the current time. Modes do not depend on the umask.
func (r *Repo) Checkout(ctx context.Context, tree digest.Digest, dir string) error {
	if err := r.checkout(ctx, tree, dir); err != nil {
		return fmt.Errorf("tree: check out %s: %w", tree, err)
	}
	return nil
}

func (r *Repo) checkout(ctx context.Context, tree digest.Digest, dir string) error {
	entries, err := r.entries(ctx, tree)
	if err != nil {
		return err
	}
	if err := makeEmpty(dir); err != nil {
		return err
	}
	var files, links []Entry
	made := map[string]bool{".": true}
	for _, e := range entries {
		if err := checkPath(e.Path); err != nil {
			return err
		}
		if err := makeDirs(dir, path.Dir(e.Path), made); err != nil {
			return err
		}
		switch e.Mode {
		case modeLink:
			links = append(links, e)
		case modeFile, modeExecutable:
			files = append(files, e)
		default:
			return fmt.Errorf("%s has mode %o", e.Path, e.Mode)
		}
	}
	if err := r.writeFiles(ctx, dir, files); err != nil {
		return err
	}
	// Links come last: while files are written there is none that a path could pass.
	targets, err := r.readAll(ctx, blobs(links))
	if err != nil {
		return err
	}
	for i, e := range links {
		if err := checkLink(e.Path, targets[i]); err != nil {
			return err
		}
		if err := os.Symlink(string(targets[i]), filepath.Join(dir, filepath.FromSlash(e.Path))); err != nil {
			return err
		}
	}
	return nil
}

// makeEmpty makes dir, or demands that it is an empty directory and no link.
func makeEmpty(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		return os.Chmod(dir, 0o755)
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if _, err := d.Readdirnames(1); err != io.EOF {
		if err == nil {
			err = fmt.Errorf("%s is not empty", dir)
		}
		return err
	}
	return nil
}

// makeDirs makes rel below dir, from the outermost part on.
func makeDirs(dir, rel string, made map[string]bool) error {
	if made[rel] {
		return nil
	}
	if err := makeDirs(dir, path.Dir(rel), made); err != nil {
		return err
	}
	made[rel] = true
	name := filepath.Join(dir, filepath.FromSlash(rel))
	if err := os.Mkdir(name, 0o755); err != nil {
		return err
	}
	return os.Chmod(name, 0o755)
}

// perWriter is how many files are worth another git process.
const perWriter = 64

// writeFiles writes regular files, a few processes side by side.
func (r *Repo) writeFiles(ctx context.Context, dir string, files []Entry) error {
	workers := max(1, min(runtime.GOMAXPROCS(0), 4, len(files)/perWriter))
	g, ctx := errgroup.WithContext(ctx)
	for w := range workers {
		part := files[len(files)*w/workers : len(files)*(w+1)/workers]
		g.Go(func() error {
			ask, err := names(blobs(part))
			if err != nil {
				return err
			}
			return r.objects.each(ctx, ask, func(i int, o object) error {
				if o.kind != "blob" {
					return fmt.Errorf("%s: object %s is %s, not a blob", part[i].Path, part[i].Blob, o.kind)
				}
				return writeFile(filepath.Join(dir, filepath.FromSlash(part[i].Path)), part[i].Mode, o)
			})
		})
	}
	return g.Wait()
}

func writeFile(name string, mode uint32, o object) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fs.FileMode(mode))
	if err != nil {
		return err
	}
	n, err := io.Copy(f, o.body)
	if err == nil && n != o.size {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		err = f.Chmod(fs.FileMode(mode))
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
