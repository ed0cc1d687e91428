package tree

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pbuild/engine/digest"
)

// mendPacks makes every pack whole: git would take an object in a damaged one for there, and never write it again.
func (r *Repo) mendPacks(ctx context.Context) error {
	dir := filepath.Join(r.dir, "objects", "pack")
	all, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var packs []string
	for _, f := range all {
		switch name := filepath.Join(dir, f.Name()); filepath.Ext(name) {
		case ".pack":
			packs = append(packs, name)
		case away: // whoever unpacked it was killed
			packs = append(packs, strings.TrimSuffix(name, away))
			if err := os.Rename(name, strings.TrimSuffix(name, away)); err != nil {
				return err
			}
		case "", ".midx", ".rev", ".bitmap": // git makes it from the others, and may be misled by it
			if f.IsDir() {
				continue
			}
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	aside, err := r.scratch()
	if err != nil {
		return err
	}
	defer os.RemoveAll(aside)
	if err := write(aside); err != nil {
		return err
	}
	for _, pack := range packs {
		if err := r.mendPack(ctx, aside, pack); err != nil {
			return err
		}
	}
	r.objects.forget()
	r.infos.forget()
	return r.indexPacks(ctx)
}

// mendPack indexes a pack anew, in a repository aside, for which git reads all of it. One that git refuses is removed, once what can be read of it is loose.
func (r *Repo) mendPack(ctx context.Context, aside, pack string) error {
	index := strings.TrimSuffix(pack, ".pack") + ".idx"
	fresh := filepath.Join(aside, "pack.idx")
	defer os.Remove(fresh)
	_, err := r.run(ctx, call{dir: aside}, "index-pack", "-o", fresh, pack)
	if err == nil {
		return replaceIndex(index, fresh)
	}
	if !spoiled(err) {
		return err
	}
	if err := r.unpackNamed(ctx, index); err != nil {
		return err
	}
	if err := r.sync(); err != nil {
		return err
	}
	if err := r.unpackAll(ctx, pack); err != nil {
		return err
	}
	if err := os.Remove(index); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// replaceIndex puts a fresh index in the place of one that differs.
func replaceIndex(index, fresh string) error {
	want, err := os.ReadFile(fresh)
	if err != nil {
		return err
	}
	if have, err := os.ReadFile(index); err == nil && bytes.Equal(have, want) {
		return nil
	}
	return os.Rename(fresh, index)
}

// unpackNamed makes those objects of a damaged pack loose that can be read and are what its index names.
func (r *Repo) unpackNamed(ctx context.Context, index string) error {
	b, err := os.ReadFile(index)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	list, _ := r.run(ctx, call{stdin: bytes.NewReader(b)}, "show-index") // of a damaged index as much as can be read
	var z deflater
	for line := range strings.Lines(string(list)) {
		fields := strings.Fields(line) // offset, name, and what else git prints
		if len(fields) < 2 {
			continue
		}
		want, err := digest.OfGit(fields[1])
		if err != nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		var got rawObject
		err = r.objects.each(ctx, []string{fields[1]}, func(_ int, o object) error {
			if o.body == nil {
				return nil
			}
			content, err := io.ReadAll(o.body)
			got = newObject(o.kind, content)
			return err
		})
		if err != nil || got.id != want {
			continue
		}
		if err := r.putLoose(got, &z); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// unpackAll makes loose what a damaged pack holds up to the first fault, which needs no index, and takes the pack away.
func (r *Repo) unpackAll(ctx context.Context, pack string) error {
	moved := pack + away // else its objects count as there
	if err := os.Rename(pack, moved); err != nil {
		return err
	}
	f, err := os.Open(moved)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = r.run(ctx, call{stdin: f}, "unpack-objects", "-r", "-q")
	if spoiled(err) {
		err = nil // that is all of it which can be read
	}
	if err == nil {
		err = r.sync()
	}
	if err != nil {
		return errors.Join(err, os.Rename(moved, pack))
	}
	return os.Remove(moved)
}

// away ends the name of a pack while it is unpacked.
const away = ".unpacking"

// spoiled says that git refuses a pack for what it holds, and not because it was killed or could not write.
func spoiled(err error) bool {
	g, ok := errors.AsType[*gitError](err)
	return ok && g.exit > 0 && !slices.ContainsFunc([]string{"No space left", "quota exceeded", "unable to", "cannot ", "write error", "Input/output error", "out of memory", "Out of memory"}, func(s string) bool {
		return strings.Contains(g.stderr, s)
	})
}
