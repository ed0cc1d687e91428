package tree

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"pbuild/engine/digest"
)

// Verify reads trees again, with all that they name, and says of each that is not whole what is wrong with it. Such a tree loses its ref, so that it
// counts as missing and can be made again. Nobody may be making trees meanwhile.
func (r *Repo) Verify(ctx context.Context, trees []digest.Digest) (broken map[digest.Digest]error, err error) {
	err = r.mendPacks(ctx)
	if err == nil {
		err = r.dropDamaged()
	}
	if err != nil {
		return nil, fmt.Errorf("tree: verify: %w", err)
	}
	broken = map[digest.Digest]error{}
	var lose strings.Builder
	sound := map[digest.Digest]bool{}
	for _, t := range trees {
		err := r.verify(ctx, t, sound)
		if ctx.Err() != nil {
			return broken, ctx.Err()
		}
		if err != nil {
			broken[t] = err
			fmt.Fprintf(&lose, "delete %s%s\n", refPrefix, name(t))
		}
	}
	if len(broken) > 0 {
		if err := r.updateRefs(ctx, lose.String()); err != nil {
			return broken, fmt.Errorf("tree: verify: %w", err)
		}
	}
	return broken, nil
}

// dropDamaged removes loose files that do not hold the object of their name: git would take it for there, and never write it again.
func (r *Repo) dropDamaged() error {
	loose, err := filepath.Glob(filepath.Join(r.dir, "objects", "[0-9a-f][0-9a-f]", "*"))
	if err != nil {
		return err
	}
	for _, file := range loose {
		id := filepath.Base(filepath.Dir(file)) + filepath.Base(file)
		if len(id) != 2*sha1.Size {
			continue // being written
		}
		b, err := os.ReadFile(file)
		if err == nil && !isObject(b, id) {
			err = os.Remove(file)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isObject says whether a loose file holds the object with an id.
func isObject(b []byte, id string) bool {
	z, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		return false
	}
	h := sha1.New()
	_, err = io.Copy(h, z)
	return err == nil && hex.EncodeToString(h.Sum(nil)) == id
}

// verify reads what a tree names but what is known to be sound, and adds it to that.
func (r *Repo) verify(ctx context.Context, tree digest.Digest, sound map[digest.Digest]bool) error {
	seen := map[digest.Digest]bool{}
	var files []digest.Digest
	for level := []digest.Digest{tree}; len(level) > 0; {
		var next []digest.Digest
		err := r.readTrees(ctx, level, func(_ int, items []item, _ bool) {
			for _, it := range items {
				switch {
				case sound[it.id] || seen[it.id]:
					continue
				case it.mode == modeDir:
					next = append(next, it.id)
				default:
					files = append(files, it.id)
				}
				seen[it.id] = true
			}
		})
		if err != nil {
			return err
		}
		level = next
	}
	ask, err := names(files)
	if err != nil {
		return err
	}
	err = r.objects.each(ctx, ask, func(i int, o object) error { // git reads the content, too
		if o.kind != "blob" {
			return fmt.Errorf("object %s is %s, not a blob", files[i], o.kind)
		}
		return nil
	})
	if err == nil {
		maps.Copy(sound, seen)
	}
	return err
}
